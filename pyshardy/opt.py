"""`pyshardy-opt`, also as `python -m pyshardy.opt`: `cli/opt.py` in a process that does nothing else."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process and end it.

    A small file takes little longer than importing jaxlib, so what a process of its own need not do is left out:
    looking for garbage among what is imported, finding MLIR's Python classes, and taking everything apart at the end.
    """
    gc.disable()
    from pyshardy.cli import opt
    from pyshardy.ir.dialects import do_without_python_classes

    do_without_python_classes()
    gc.freeze()
    gc.enable()
    status = opt.main()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
