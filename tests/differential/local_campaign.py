"""A long comparison of local programs: `python -m tests.differential.local_campaign --modules 3000`."""

import sys

from .local_compare import LOCAL

if __name__ == "__main__":
    sys.exit(LOCAL.run("Compare local programs with the reference's."))
