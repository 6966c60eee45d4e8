"""Memory of Pydantic AI agents: conversations as sessions, and tools for memories."""

from greenroom.adapters.pydantic_ai.conversations import GreenroomConversations as GreenroomConversations
from greenroom.adapters.pydantic_ai.memories import memory_toolset as memory_toolset
