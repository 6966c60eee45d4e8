"""`python -m greenroom.transports.cli` runs `greenroom`; files that `setup` wrote use this name."""

import sys

from greenroom.transports.ops.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
