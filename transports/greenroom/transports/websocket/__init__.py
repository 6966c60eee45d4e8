"""MCP over WebSocket: the server's side and the client's.

`liveness` decides whether a client is still there, as functions of values. `handshake`, which decides who
may connect, and `socket` speak WebSocket over a trio stream, `server`
puts them before `McpServer`, and `client` is a transport for the SDK's own client.

The server speaks through wsproto, which trio-websocket is made of, and not through
trio-websocket's connections. Those answer text that is no UTF-8 and broken frames by hanging
up, where a close code should say why; they count a message's limit in characters and keep an
object for each piece of it; and they run two tasks for a client that says nothing. The client
has none of these needs and uses trio-websocket.
"""
