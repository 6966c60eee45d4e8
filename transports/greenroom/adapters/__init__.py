"""Greenroom as the memory of agent frameworks: an adapter each, over a `greenroom.actors.Database`.

Each adapter needs its framework, an extra of the same name (``pip install 'greenroom[langgraph]'``), and
imports it at first use. The database owns its folder, or is attached to the process that does: a running
server, or another program. When the owner ends, another process takes over, and each pending call runs once.

    from greenroom.actors import Database
    from greenroom.adapters.langgraph import GreenroomStore
"""
