"""Greenroom as the long-term memory of LangGraph's graphs.

Needs ``pip install 'greenroom[langgraph]'``.
"""

from greenroom.adapters.langgraph.store import GreenroomStore as GreenroomStore
