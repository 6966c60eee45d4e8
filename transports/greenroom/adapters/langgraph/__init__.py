"""Long-term memory and checkpoints of LangGraph's graphs.

Needs ``pip install 'greenroom[langgraph]'``.
"""

from greenroom.adapters.langgraph.checkpointer import GreenroomSaver as GreenroomSaver
from greenroom.adapters.langgraph.store import GreenroomStore as GreenroomStore
