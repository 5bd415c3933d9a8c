"""`python -m warploom`: the same as the command `warploom`."""

import sys

from warploom.cli.__main__ import main

sys.exit(main())
