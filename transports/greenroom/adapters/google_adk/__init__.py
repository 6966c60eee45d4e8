"""Sessions and memory of Google's Agent Development Kit, stored by Greenroom.

service = GreenroomSessionService(database)
memory = GreenroomMemoryService(database)
runner = Runner(app_name="guide", agent=agent, session_service=service, memory_service=memory)
"""

from greenroom.adapters.google_adk.memory import GreenroomMemoryService as GreenroomMemoryService
from greenroom.adapters.google_adk.sessions import GreenroomSessionService as GreenroomSessionService
