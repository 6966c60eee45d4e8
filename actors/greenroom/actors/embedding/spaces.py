"""The names of vector spaces. Vectors of two spaces cannot be compared."""

from __future__ import annotations

from typing import Final

STATIC: Final = "static:wordllama-l2-supercat:1:256"
"""Of the word vectors that ship with the program. The 1 is our way of making a text's vector of theirs."""
