"""`pyshardy-opt`, also as `python -m pyshardy.opt`: `cli/opt.py` in a process that does nothing else."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from contextlib import suppress
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process and end it.

    A small file takes little longer than importing jaxlib, so this process omits everything that it does not need:
    garbage collection during imports, importing NumPy before it is used, finding MLIR's Python classes, and clean-up at
    exit.
    """
    gc.disable()
    _import_mlir_without_numpy()
    from pyshardy.cli import opt
    from pyshardy.ir.dialects import do_without_python_classes

    do_without_python_classes()
    gc.freeze()
    gc.enable()
    status = opt.main()
    sys.stderr.flush()
    os._exit(status)


def _import_mlir_without_numpy() -> None:
    """Import MLIR's bindings without NumPy, which they use only for builders of attributes that nothing here needs.

    Code that uses NumPy imports it later as usual.
    """
    if "numpy" in sys.modules:
        return
    sys.modules["numpy"] = None  # type: ignore[assignment]  # as if it were not installed
    with suppress(ImportError):  # these bindings need NumPy: they are imported again where they are used
        importlib.import_module("jaxlib.mlir.ir")
    del sys.modules["numpy"]


if __name__ == "__main__":
    main()
