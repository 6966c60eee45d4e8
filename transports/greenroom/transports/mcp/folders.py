"""The folders that a client works in, told to the request that needs them."""

from __future__ import annotations

from greenroom.actors.knowledge.ingest.files.places import CLIENT_FOLDERS
from greenroom.transports.mcp.client_port import ClientPort
from greenroom.transports.mcp.clients.roots import Roots, tells_folders
from greenroom.transports.mcp.frames.calls import Call


async def learn_folders(client: ClientPort, call: Call) -> None:
    """Ask a client for its folders, if it tells any, for what is asked in this task."""
    if tells_folders(client.identity):
        client.roots = client.roots or Roots(client.identity)
        CLIENT_FOLDERS.set(await client.roots.known_folders(call))
