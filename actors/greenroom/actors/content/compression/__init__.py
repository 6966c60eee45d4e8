"""Compression of texts for prompts within a budget: pure functions, no model."""

from greenroom.actors.content.compression.compress import Compressed as Compressed
from greenroom.actors.content.compression.compress import compress as compress
