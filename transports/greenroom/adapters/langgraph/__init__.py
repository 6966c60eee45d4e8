"""Greenroom as the long-term memory of LangGraph's graphs, and as what keeps their checkpoints.

Needs ``pip install 'greenroom[langgraph]'``.
"""

from greenroom.adapters.langgraph.checkpointer import GreenroomSaver as GreenroomSaver
from greenroom.adapters.langgraph.store import GreenroomStore as GreenroomStore
