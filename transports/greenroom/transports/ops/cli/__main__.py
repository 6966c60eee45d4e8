"""`python -m greenroom.transports.ops.cli`, which is `greenroom`."""

import sys

from greenroom.transports.ops.cli.main import main

sys.exit(main())
