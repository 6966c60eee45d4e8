"""Greenroom as the memory of agents made with the OpenAI Agents SDK.

The extra is ``openai-agents``. Pass a `GreenroomSession` to ``Runner.run(…, session=…)``. It is a session of
Greenroom, too: other agents read and search it with the MCP tools.
"""

from greenroom.adapters.base.extras import needs

with needs("openai-agents"):
    from greenroom.adapters.openai_agents.session import GreenroomSession as GreenroomSession
