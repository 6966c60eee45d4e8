"""Greenroom as the long-term memory of LlamaIndex agents and chat engines."""

from greenroom.adapters.llama_index.block import GreenroomMemoryBlock as GreenroomMemoryBlock
