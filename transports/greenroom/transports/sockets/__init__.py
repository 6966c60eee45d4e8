"""Listeners and connections: stdio, WebSocket, HTTP."""
