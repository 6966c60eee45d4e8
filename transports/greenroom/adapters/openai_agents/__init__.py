"""Greenroom as the memory of agents made with the OpenAI Agents SDK.

The extra is ``openai-agents``. A `GreenroomSession` is what ``Runner.run(…, session=…)`` takes, and a session
of Greenroom as well: other agents read and search it by the MCP tools.
"""

from greenroom.adapters.base.extras import needs

with needs("openai-agents"):
    from greenroom.adapters.openai_agents.session import GreenroomSession as GreenroomSession
