"""A module as plain Python objects, on which every pass of pyshardy works.

MLIR is read once into these nodes (`read.py`) and written once from them (`write.py`). They mirror MLIR's structure,
including the order of use-lists, because some results of propagation depend on it. Attributes that pyshardy understands
are held as values of `core` and `rules`, all others as opaque MLIR attributes (`attrs.py` says which).

The ops are in `op.py`, their values, blocks and regions in `blocks.py`. Import them from here, except in modules of the
compiled core: Cython wants classes from where they are defined.

Source: docs/semantics/propagation.md#order-of-uses
"""

from __future__ import annotations

from pyshardy.ir.blocks import Block, Region, Value
from pyshardy.ir.clone import clone_region_into
from pyshardy.ir.op import TERMINATORS, Op
from pyshardy.ir.value_type import ValueType
from pyshardy.ir.walk import walk, walk_post_order

__all__ = ["Block", "Op", "Region", "TERMINATORS", "Value", "ValueType", "clone_region_into", "walk", "walk_post_order"]
