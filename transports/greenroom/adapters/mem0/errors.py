"""mem0's error for wrong arguments, with its members."""

from __future__ import annotations

from typing import Any


class ValidationError(Exception):
    """Arguments of ``add`` are wrong.

    Attributes:
        message: What is wrong.
        error_code: Which rule: ``VALIDATION_001`` to ``VALIDATION_003``.
        details: The values.
        suggestion: What to do.
        debug_info: Always empty.
    """

    def __init__(self, message: str, error_code: str, details: dict[str, Any], suggestion: str) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code
        self.details = details
        self.suggestion = suggestion
        self.debug_info: dict[str, Any] = {}
