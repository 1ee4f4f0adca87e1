"""The dialects in C++: registering them, and their attributes.

`jaxlib.mlir.dialects` adds a Python class per op. Its import takes as long as that of all of pyshardy, and nothing
here uses the classes. `sdy` still comes from there: some versions of its C++ half import the Python half, which would
stay incomplete for other users otherwise.
"""

from __future__ import annotations

from jaxlib.mlir._mlir_libs import _chlo as chlo
from jaxlib.mlir._mlir_libs import _mlir
from jaxlib.mlir._mlir_libs import _mlirHlo as mhlo
from jaxlib.mlir._mlir_libs import _stablehlo as stablehlo
from jaxlib.mlir.dialects import sdy

__all__ = ["chlo", "do_without_python_classes", "mhlo", "sdy", "stablehlo"]


def do_without_python_classes() -> None:
    """Stop MLIR from importing the Python classes of a dialect when it meets the dialect's first attribute.

    This affects the whole process, so call it only in a process that belongs to pyshardy.
    """
    _mlir.globals.dialect_search_modules = []
