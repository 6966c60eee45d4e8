"""`python -m greenroom.transports.cli`, which is `greenroom`."""

import sys

from greenroom.transports.cli.main import main

sys.exit(main())
