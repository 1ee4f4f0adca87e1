"""The dialects as C++ has them: registering them, and their attributes.

`jaxlib.mlir.dialects` adds a Python class per op, which takes as long to import as all of pyshardy, and which nothing
here uses. `sdy` comes from there all the same: some versions of its C++ half import the Python half, which stays
incomplete, for whoever needs it, if that is how it is imported.
"""

from __future__ import annotations

from jaxlib.mlir._mlir_libs import _chlo as chlo
from jaxlib.mlir._mlir_libs import _mlir
from jaxlib.mlir._mlir_libs import _mlirHlo as mhlo
from jaxlib.mlir._mlir_libs import _stablehlo as stablehlo
from jaxlib.mlir.dialects import sdy

__all__ = ["chlo", "do_without_python_classes", "mhlo", "sdy", "stablehlo"]


def do_without_python_classes() -> None:
    """Have MLIR not import the Python classes of a dialect when it meets its first attribute.

    That is for the whole process, so only for one that belongs to pyshardy.
    """
    _mlir.globals.dialect_search_modules = []
