"""Greenroom as the store behind Claude's memory tool (``memory_20250818``).

The extra is ``anthropic``. Pass `GreenroomMemoryTool` to ``client.beta.messages.tool_runner(tools=[…])``; for
an ``AsyncAnthropic`` client, pass `AsyncGreenroomMemoryTool`. Each of Claude's files is a memory, which
searches find.
"""

from greenroom.adapters.base.extras import needs

with needs("anthropic"):
    from greenroom.adapters.anthropic.tool import AsyncGreenroomMemoryTool as AsyncGreenroomMemoryTool
    from greenroom.adapters.anthropic.tool import GreenroomMemoryTool as GreenroomMemoryTool
