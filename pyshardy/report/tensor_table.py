"""Inputs and outputs as a table: shardings, their origins, and shards."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.folding import fold_names
from pyshardy.core.text import format_bytes, format_shape, format_symbol
from pyshardy.report.given_by import Shorten, given_by_cell
from pyshardy.report.layout import Cell, Column, Table
from pyshardy.report.printing import TableOptions
from pyshardy.report.specs import format_sharding
from pyshardy.report.summary import TensorRow

_TENSOR_COLUMNS = (
    Column("name", is_name=True),
    Column(""),
    Column("tensor", rank=3, is_extra=True),
    Column("sharding"),
    Column("given by", rank=1),
    Column("on one device", rank=4),
    Column("bytes per device", rank=2, is_number=True),
)


def tensor_table(
    title: str, rows: Sequence[TensorRow], options: TableOptions, has_meshes: bool, shorten: Shorten
) -> Table:
    """Inputs or outputs; equal ones share a row unless all are shown.

    Args:
        title: The title of the table.
        rows: The tensors.
        options: The display options.
        has_meshes: Whether to name the mesh of a sharding, because there are several.
        shorten: Shorter names of annotations, for narrow tables.
    """
    cells = [_tensor_cells(row, options, has_meshes) for row in rows]
    folded = fold_names(
        (row.name, (rest, position) if options.unfold else rest)
        for position, (row, rest) in enumerate(zip(rows, cells))
    )
    table = []
    for found in folded:
        tensor, sharding, local = cells[found.members[0]]
        given_by = given_by_cell([rows[member] for member in found.members], shorten)
        count = f"×{len(found.members)}" if len(found.members) > 1 else ""
        size = sum(rows[member].bytes_per_device for member in found.members)
        table.append((Cell(found.name), Cell(count), tensor, sharding, given_by, local, Cell(format_bytes(size))))
    return Table(title, _TENSOR_COLUMNS, table)


def _tensor_cells(row: TensorRow, options: TableOptions, has_meshes: bool) -> tuple[Cell, Cell, Cell]:
    is_smaller = row.bytes_per_device < row.bytes_total
    sharding = format_sharding(row.sharding, options.notation)
    if has_meshes and row.given_by and row.sharding is not None and isinstance(row.sharding.mesh, str):
        sharding += f" on {format_symbol(row.sharding.mesh)}"
    return (
        Cell(format_shape(row.shape, row.dtype)),
        Cell(sharding, style="green" if is_smaller else "dim"),
        Cell(format_shape(row.local_shape, row.dtype)),
    )
