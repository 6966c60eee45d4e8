"""mem0's Python interface over Greenroom's memories; mem0 itself is not needed.

A program that used ``mem0.Memory`` or ``mem0.AsyncMemory`` takes these, with an open database as the first
argument; arguments, answers and errors are those of mem0 2.2. No language model is asked.
"""

from greenroom.adapters.mem0.async_memory import AsyncMemory as AsyncMemory
from greenroom.adapters.mem0.errors import ValidationError as ValidationError
from greenroom.adapters.mem0.memory import Memory as Memory
from greenroom.adapters.mem0.messages import Extractor as Extractor
