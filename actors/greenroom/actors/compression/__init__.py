"""Shorter texts for models: what is to be kept of a text within a budget; pure functions, no model."""

from greenroom.actors.content.compression.compress import Compressed as Compressed
from greenroom.actors.content.compression.compress import compress as compress
