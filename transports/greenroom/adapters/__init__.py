"""Greenroom as the memory of agent frameworks: an adapter each, over a `greenroom.actors.Database`.

Each needs its framework, an extra of the same name (``pip install 'greenroom[langgraph]'``), and nothing of
it is imported until it is used. The database owns its folder, or is attached to the process that does: a
server that runs, or another program. When that ends, another one takes over, and calls in flight are carried
out once.

    from greenroom.actors import Database
    from greenroom.adapters.langgraph import GreenroomStore
"""
