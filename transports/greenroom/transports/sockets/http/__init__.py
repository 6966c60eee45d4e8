"""MCP over Streamable HTTP, in both eras of the protocol.

`request_head`, `stateless_rules` and `event_log` decide, as functions of values. `app` is an ASGI
application, which needs only trio. `server` runs it under the HTTP/1.1 of hypercorn's trio worker, over a
connection (`timed_connection`) that can be timed and ended from outside.
"""
