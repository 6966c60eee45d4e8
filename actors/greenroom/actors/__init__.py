"""Shared sessions and agent memory: actors, their requests, and who may see what.

async with open_greenroom(folder) as runtime:
agent = Agent(runtime, Principal(agent_id="planner"))
made = await agent.ask(CreateSession(purpose="plan the release"))
await agent.ask(AddMessage(session_id=made.session_id, content="Shall we begin?"))
"""

from greenroom.actors._agent import REQUESTS as REQUESTS
from greenroom.actors._agent import Agent as Agent
from greenroom.actors._agent import is_looked_up as is_looked_up
from greenroom.actors._agent import is_write as is_write
from greenroom.actors._audit import AuditRow as AuditRow
from greenroom.actors._open import open_greenroom as open_greenroom
from greenroom.actors._parse import parse_request as parse_request
from greenroom.actors._principal import Principal as Principal
from greenroom.actors.directory._query import ListSessions as ListSessions
from greenroom.actors.memory._actor import MemoryActor as MemoryActor
from greenroom.actors.requests._memory import DeleteMemory as DeleteMemory
from greenroom.actors.requests._memory import GetMemory as GetMemory
from greenroom.actors.requests._memory import ListMemory as ListMemory
from greenroom.actors.requests._memory import SetMemory as SetMemory
from greenroom.actors.requests._replies import MemoryDeleted as MemoryDeleted
from greenroom.actors.requests._replies import MemoryEntry as MemoryEntry
from greenroom.actors.requests._replies import MemoryList as MemoryList
from greenroom.actors.requests._replies import MemoryRead as MemoryRead
from greenroom.actors.requests._replies import MemoryStored as MemoryStored
from greenroom.actors.requests._replies import MessageAdded as MessageAdded
from greenroom.actors.requests._replies import MessagePage as MessagePage
from greenroom.actors.requests._replies import MessageView as MessageView
from greenroom.actors.requests._replies import Reply as Reply
from greenroom.actors.requests._replies import SearchHit as SearchHit
from greenroom.actors.requests._replies import SearchResults as SearchResults
from greenroom.actors.requests._replies import SenderMessages as SenderMessages
from greenroom.actors.requests._replies import SessionCreated as SessionCreated
from greenroom.actors.requests._replies import SessionList as SessionList
from greenroom.actors.requests._replies import SessionRead as SessionRead
from greenroom.actors.requests._replies import SessionStatistics as SessionStatistics
from greenroom.actors.requests._replies import SessionSummary as SessionSummary
from greenroom.actors.requests._replies import SessionUpdated as SessionUpdated
from greenroom.actors.requests._replies import SessionView as SessionView
from greenroom.actors.requests._replies import TimeRange as TimeRange
from greenroom.actors.requests._replies import TimeRangeMessages as TimeRangeMessages
from greenroom.actors.requests._sessions import AddMessage as AddMessage
from greenroom.actors.requests._sessions import CreateSession as CreateSession
from greenroom.actors.requests._sessions import GetMessages as GetMessages
from greenroom.actors.requests._sessions import GetSession as GetSession
from greenroom.actors.requests._sessions import SearchBySender as SearchBySender
from greenroom.actors.requests._sessions import SearchByTimerange as SearchByTimerange
from greenroom.actors.requests._sessions import SearchContext as SearchContext
from greenroom.actors.requests._sessions import UpdateSession as UpdateSession
from greenroom.actors.resources._listing import CompleteResource as CompleteResource
from greenroom.actors.resources._listing import ListResources as ListResources
from greenroom.actors.resources._listing import ResourceCompletion as ResourceCompletion
from greenroom.actors.resources._listing import ResourceItem as ResourceItem
from greenroom.actors.resources._listing import ResourceList as ResourceList
from greenroom.actors.resources._reading import MemoryByScope as MemoryByScope
from greenroom.actors.resources._reading import MemoryCounts as MemoryCounts
from greenroom.actors.resources._reading import MemoryResource as MemoryResource
from greenroom.actors.resources._reading import ReadResource as ReadResource
from greenroom.actors.resources._reading import ResourceInfo as ResourceInfo
from greenroom.actors.resources._reading import SessionResource as SessionResource
from greenroom.actors.resources._subscriber import ResourceSubscriber as ResourceSubscriber
from greenroom.actors.resources._uris import TEMPLATES as TEMPLATES
from greenroom.actors.resources._uris import ResourceTemplate as ResourceTemplate
from greenroom.actors.services._errors import ServiceError as ServiceError
from greenroom.actors.services._memory import Memory as Memory
from greenroom.actors.services._memory import MemoryService as MemoryService
from greenroom.actors.services._memory import MemoryVersion as MemoryVersion
from greenroom.actors.services._session import Event as Event
from greenroom.actors.services._session import Session as Session
from greenroom.actors.services._session import SessionService as SessionService
from greenroom.actors.session._actor import SessionActor as SessionActor
