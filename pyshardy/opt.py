"""`python -m pyshardy.opt`: the same as `pyshardy-opt`."""

from __future__ import annotations

import sys

from pyshardy.cli.opt import main

if __name__ == "__main__":
    sys.exit(main())
