"""JSON-RPC messages, without I/O."""
