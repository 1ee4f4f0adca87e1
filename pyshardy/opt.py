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

    A small file takes little longer than importing jaxlib, so what a process of its own need not do is left out:
    looking for garbage among what is imported, importing numpy before it is used, finding MLIR's Python classes, and
    taking everything apart at the end.
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
    """Import MLIR's bindings, which take numpy if it is there, for builders of attributes that nothing here uses.

    Whatever has use for numpy imports it later as ever.
    """
    if "numpy" in sys.modules:
        return
    sys.modules["numpy"] = None  # type: ignore[assignment]  # as if it were not installed
    with suppress(ImportError):  # of bindings that cannot do without it: they are imported again where they are used
        importlib.import_module("jaxlib.mlir.ir")
    del sys.modules["numpy"]


if __name__ == "__main__":
    main()
