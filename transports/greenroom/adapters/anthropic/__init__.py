"""Greenroom as the store behind Claude's memory tool (``memory_20250818``).

The extra is ``anthropic``. `GreenroomMemoryTool` goes into ``client.beta.messages.tool_runner(tools=[…])``,
and `AsyncGreenroomMemoryTool` into that of an ``AsyncAnthropic``. A file of Claude's is a memory, which
searches find.
"""

from greenroom.adapters.base.extras import needs

with needs("anthropic"):
    from greenroom.adapters.anthropic.tool import AsyncGreenroomMemoryTool as AsyncGreenroomMemoryTool
    from greenroom.adapters.anthropic.tool import GreenroomMemoryTool as GreenroomMemoryTool
