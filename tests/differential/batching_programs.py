"""Random gathers and scatters whose indices often hold the number of the row, in one way or another."""

from __future__ import annotations

from .draw import Draw, array, combiner, op_line, replaced, tensor


def program(seed: int) -> str:
    """A module with one function that gathers or scatters once."""
    draw = Draw(seed)
    rows = draw.choice([2, 3, 4])
    shape = [rows if draw.flag(0.9) else 5, *(draw.choice([2, 3, 4]) for _ in range(draw.randint(0, 2)))]
    extra = [draw.choice([2, 3]) for _ in range(draw.randint(0, 1))]
    index_map = draw.shuffled(draw.subset(range(len(shape)), at_least=min(2, len(shape)) if draw.flag(0.8) else 1))
    batch = [rows, *extra]
    vector = len(batch) if draw.flag(0.8) else draw.randint(0, len(batch))
    implicit = vector == len(batch) and len(index_map) == 1 and draw.flag()
    sizes = [*batch] if implicit else [*batch[:vector], len(index_map), *batch[vector:]]
    dropped = [dim for dim in range(len(shape)) if dim in index_map or draw.flag(0.3)]
    if draw.flag(0.1):
        dropped = dropped[1:]
    kept = [dim for dim in range(len(shape)) if dim not in dropped]
    window = list(range(len(batch), len(batch) + len(kept)))
    types = [tensor(shape), tensor([*batch, *(shape[dim] for dim in kept)])]
    lines, indices = _Indices(draw, types).make(sizes, vector, len(index_map), implicit)
    if draw.flag(0.2):
        lines.append(op_line("stablehlo.negate", [types[0]], [types[0]]).replace("%r", "%dead"))
    index_type = tensor(sizes, "i32")
    numbers = f"= {window}, {{}} = {dropped}, {{}} = {index_map}, index_vector_dim = {vector}>"
    if draw.flag():
        text = numbers.format("collapsed_slice_dims", "start_index_map")
        cut = array([1 if dim in dropped else size for dim, size in enumerate(shape)])
        attrs = f"dimension_numbers = #stablehlo.gather<offset_dims {text}, slice_sizes = {cut}{_flags(draw)}"
        operands = [types[0], index_type]
        lines.append(op_line("stablehlo.gather", operands, [types[1]], attrs, names=f"%a0, {indices}"))
    else:
        text = numbers.format("inserted_window_dims", "scatter_dims_to_operand_dims")
        attrs = f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims {text}{_flags(draw)}"
        operands = [types[0], index_type, types[1]]
        region, names = combiner(["f32"], [draw.choice(["add", "maximum"])]), f"%a0, {indices}, %a1"
        lines.append(op_line("stablehlo.scatter", operands, [types[0]], attrs, region, names=names))
    arguments = ", ".join(f"%a{index}: {type}" for index, type in enumerate(types))
    body = "\n".join(lines)
    result = body.rpartition("-> (")[2].rstrip(")")
    return f"func.func @main({arguments}) -> {result} {{\n{body}\n  return %r : {result}\n}}\n"


def _flags(draw: Draw) -> str:
    return ", indices_are_sorted = true" if draw.flag(0.3) else ""


class _Indices:
    """Writes the ops that make indices.

    Args:
        draw: The choices.
        types: The types of the arguments of the function, which grow.
    """

    def __init__(self, draw: Draw, types: list[str]) -> None:
        self.draw = draw
        self.types = types
        self.lines: list[str] = []

    def make(self, sizes: list[int], vector: int, count: int, implicit: bool) -> tuple[list[str], str]:
        """The lines and the name of the indices."""
        if implicit or self.draw.flag(0.3):
            return self.lines, self.value(sizes)
        dim = vector if self.draw.flag(0.9) else self.draw.randrange(len(sizes))
        counts = self._split(sizes[dim])
        parts = [list(replaced(sizes, dim, size)) for size in counts]
        names = [self.value(part) for part in parts]
        types = [tensor(part, "i32") for part in parts]
        attrs = f"dimension = {dim} : i64"
        return self.lines, self.add("stablehlo.concatenate", types, tensor(sizes, "i32"), attrs, ", ".join(names))

    def _split(self, count: int) -> list[int]:
        counts = [1] * count
        while len(counts) > 1 and self.draw.flag(0.15):
            counts[:2] = [counts[0] + counts[1]]
        return counts

    def value(self, sizes: list[int], depth: int = 0) -> str:
        """A value of this shape: an argument, an iota, or something made of such."""
        draw, type = self.draw, tensor(sizes, "i32")
        kinds = ["argument", "iota", "iota"]
        if depth < 3:
            kinds += ["reshape", "broadcast", "clamp", "select", "negate"]
        kind = draw.choice(kinds)
        if kind == "iota" and sizes:
            dim = 0 if draw.flag(0.8) else draw.randrange(len(sizes))
            return self.add("stablehlo.iota", [], type, f"iota_dimension = {dim} : i64", "")
        if kind == "reshape":
            other = [1, *sizes] if draw.flag() else [*sizes, 1]
            return self.add("stablehlo.reshape", [tensor(other, "i32")], type, "", self.value(other, depth + 1))
        if kind == "broadcast" and sizes:
            attrs, first = "broadcast_dimensions = array<i64: 0>", sizes[:1]
            given = self.value(first, depth + 1)
            return self.add("stablehlo.broadcast_in_dim", [tensor(first, "i32")], type, attrs, given)
        if kind == "clamp":
            names = ", ".join(self.value(sizes, depth + 1) for _ in range(3))
            return self.add("stablehlo.clamp", [type] * 3, type, "", names)
        if kind == "select":
            condition = self.argument(tensor([], "i1"))
            names = ", ".join([condition, self.value(sizes, depth + 1), self.value(sizes, depth + 1)])
            return self.add("stablehlo.select", [tensor([], "i1"), type, type], type, "", names)
        if kind == "negate":
            return self.add("stablehlo.negate", [type], type, "", self.value(sizes, depth + 1))
        return self.argument(type)

    def argument(self, type: str) -> str:
        """A new argument of the function."""
        self.types.append(type)
        return f"%a{len(self.types) - 1}"

    def add(self, name: str, operands: list[str], result: str, attrs: str, names: str) -> str:
        """Append a line; the name of its result."""
        made = f"%i{len(self.lines)}"
        self.lines.append(op_line(name, operands, [result], attrs, names=names).replace("%r", made))
        return made
