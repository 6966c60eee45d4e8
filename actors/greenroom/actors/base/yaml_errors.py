"""What a reader of YAML fails with besides its own errors."""

from typing import Final

MALFORMED: Final = (LookupError, AttributeError)
"""Where a value is not of the type that its tag says, as in ``!!int ''`` and ``!!timestamp now``."""
