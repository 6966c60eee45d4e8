"""Adapters that make Greenroom the memory of agent frameworks, over a `greenroom.actors.Database`.

Each adapter needs its framework, which is an extra of the same name (``pip install 'greenroom[langgraph]'``),
and imports it at first use. The database owns its folder, or attaches to the owner: a server or another
program. When the owner ends, another process takes over, and each pending call runs once.

    from greenroom.actors import Database
    from greenroom.adapters.langgraph import GreenroomStore
"""
