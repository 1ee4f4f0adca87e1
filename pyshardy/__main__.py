"""`python -m pyshardy`: the command line, also from a checkout that is not installed."""

import sys

from pyshardy.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
