"""MCP over Streamable HTTP, in both eras of the protocol.

`_head`, `_modern`, `_events` and `_sessions` decide, as functions of values. `_app` is an ASGI
application; it needs nothing of a server but trio. `_server` puts it under the HTTP/1.1 of
hypercorn's trio worker, with a connection (`_wire`) that can be timed, and ended, from outside.
"""
