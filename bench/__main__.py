"""The start of `python -m bench`: what is missing is said, before anything that needs it is imported."""

from __future__ import annotations

import sys

from bench.requirements import explained, is_missing

NOT_INSTALLED = 3


def main() -> int:
    """Run the program and return its exit code; 3 where a package is missing."""
    try:
        from bench.command import main as run  # noqa: PLC0415 - it needs what may be missing

        return run()
    except ModuleNotFoundError as error:
        if not is_missing(error):
            raise
        print(f"bench: {explained({'it': error})}", file=sys.stderr)
        return NOT_INSTALLED


if __name__ == "__main__":
    sys.exit(main())
