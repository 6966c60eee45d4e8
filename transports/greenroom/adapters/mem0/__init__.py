"""mem0's Python interface over Greenroom's memories; mem0 itself is not needed.

Replace ``mem0.Memory`` or ``mem0.AsyncMemory`` with these classes; their first argument is an open database.
Arguments, replies and errors are the same as in mem0 2.2. No language model is called.
"""

from greenroom.adapters.mem0.memory import AsyncMemory as AsyncMemory
from greenroom.adapters.mem0.messages import ValidationError as ValidationError
from greenroom.adapters.mem0.memory import Memory as Memory
from greenroom.adapters.mem0.messages import Extractor as Extractor
