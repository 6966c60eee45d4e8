"""MCP over WebSocket: server and client.

`handshake` and `socket` speak WebSocket over a trio stream; `handshake` also decides who may connect.
`server` connects them to `McpServer`. `client` is a transport for the SDK's own client.

The server uses wsproto, on which trio-websocket is built, but not trio-websocket's connections. Those hang
up on invalid UTF-8 and broken frames, where a close code should state the reason. They count a message's
limit in characters, keep an object per fragment, and run two tasks for a silent client. None of this matters
to the client, which uses trio-websocket.
"""
