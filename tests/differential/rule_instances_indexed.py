"""Random valid slices, concatenations, pads, gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable

from .draw import Draw, Shape, array, combiner, function, op, op_line, replaced, tensor


def slice(draw: Draw) -> str:  # noqa: A001 (named as the op)
    """With starts, ends and strides."""
    shape = draw.shape()
    return op("stablehlo.slice", [tensor(shape)], *_slice_parts(draw, shape))


def _slice_parts(draw: Draw, shape: Shape, only: int | None = None) -> tuple[list[str], str]:
    """Result types and attributes of a slice, which cuts only one dimension if `only` is given."""
    starts, limits, strides, sizes = [], [], [], []
    for dim, size in enumerate(shape):
        whole = draw.flag(0.4) if only is None else dim != only
        start = 0 if whole else draw.randint(0, size)
        limit = size if whole else draw.randint(start, size)
        stride = 1 if whole or only is not None else draw.choice([1, 1, 2, 3])
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
        sizes.append(-(-(limit - start) // stride))
    attrs = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
    return [tensor(sizes)], attrs


def concatenate(draw: Draw) -> str:
    """Of arguments, of slices of them, and of slices of slices."""
    shape = draw.shape(min_rank=1)
    dim = draw.randrange(len(shape))
    types = [tensor(replaced(shape, dim, draw.size())) for _ in range(draw.randint(1, 3))]
    pool = [f"%a{index}" for index in range(len(types))]
    lines, type_of = [], dict(zip(pool, types))
    for index in range(draw.randint(0, 4)):
        source = draw.choice(pool)
        results, attrs = _slice_parts(draw, _sizes_of(type_of[source]), only=dim)
        name = f"%s{index}"
        lines.append(op_line("stablehlo.slice", [type_of[source]], results, attrs, names=source).replace("%r", name))
        type_of[name] = results[0]
        pool.append(name)
    if lines and draw.flag(0.3):
        pool = [name for name in pool if name.startswith("%s")]
    joined = [draw.choice(pool) for _ in range(draw.randint(1, 3))]
    total = sum(_sizes_of(type_of[name])[dim] for name in joined)
    operands, result = [type_of[name] for name in joined], tensor(replaced(shape, dim, total))
    attrs = f"dimension = {dim} : i64"
    lines.append(op_line("stablehlo.concatenate", operands, [result], attrs, names=", ".join(joined)))
    return function("\n".join(lines), types)


def _sizes_of(type: str) -> Shape:
    return tuple(int(size) for size in type.removeprefix("tensor<").split("x")[:-1])


def pad(draw: Draw) -> str:
    """With positive, negative and interior padding."""
    shape = draw.shape()
    low, high, interior, sizes = [], [], [], []
    for size in shape:
        plain = draw.flag(0.4)
        low.append(0 if plain else draw.randint(-2, 3))
        high.append(0 if plain else -low[-1] if draw.flag(0.3) else draw.randint(-2, 3))
        interior.append(0 if plain or draw.flag() else draw.randint(1, 2))
        sizes.append(size + low[-1] + high[-1] + max(size - 1, 0) * interior[-1])
    if min(sizes, default=0) < 0:
        return pad(draw)
    attrs = f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(interior)}"
    return op("stablehlo.pad", [tensor(shape), "tensor<f32>"], [tensor(sizes)], attrs)


def dynamic_slice(draw: Draw) -> str:
    """At computed places."""
    shape = draw.shape()
    sizes = [draw.below(size) for size in shape]
    operands = [tensor(shape), *["tensor<i32>"] * len(shape)]
    return op("stablehlo.dynamic_slice", operands, [tensor(sizes)], f"slice_sizes = {array(sizes)}")


def dynamic_update_slice(draw: Draw) -> str:
    """At computed places, and sometimes at constant ones."""
    shape = draw.shape()
    types = [tensor(shape), tensor([draw.below(size) for size in shape])]
    places = ["tensor<i32>"] * len(shape)
    names = ["%a0", "%a1", *(draw.choice(["%c", "%a2"]) for _ in places)]
    constant = op_line("stablehlo.constant", [], ["tensor<i32>"], "value = dense<0> : tensor<i32>").replace("%r", "%c")
    line = op_line("stablehlo.dynamic_update_slice", [*types, *places], [types[0]], names=", ".join(names))
    return function(f"{constant}\n{line}", [*types, "tensor<i32>"])


class Scheme:
    """Dimension numbers of a gather or scatter: an input, its windows, and the dimensions of the indices."""

    def __init__(self, draw: Draw) -> None:
        self.input = draw.shape()
        dims = range(len(self.input))
        self.batching = draw.subset(dims, at_most=2) if draw.flag(0.4) else []
        self.dropped = draw.subset([dim for dim in dims if dim not in self.batching])
        kept = [dim for dim in dims if dim not in self.batching and dim not in self.dropped]
        indexable = [dim for dim in dims if dim not in self.batching]
        self.index_map = draw.shuffled(draw.subset(indexable))
        batch = [self.input[dim] for dim in self.batching]
        batch += [draw.size() for _ in range(draw.randint(0, 2))]
        order = draw.shuffled(range(len(batch)))
        sizes = [batch[which] for which in order]
        places = [order.index(which) for which in range(len(self.batching))]
        self.vector = draw.randint(0, len(sizes))
        implicit = len(self.index_map) == 1 and draw.flag(0.3)
        if implicit:
            self.vector = len(sizes)
            self.indices = tuple(sizes)
        else:
            self.indices = (*sizes[: self.vector], len(self.index_map), *sizes[self.vector :])
        self.index_batching = [place if implicit or place < self.vector else place + 1 for place in places]
        self.cut = [draw.below(self.input[dim]) for dim in kept]
        rank = len(sizes) + len(kept)
        self.window = sorted(draw.sample(range(rank), len(kept)))
        window_sizes, batch_sizes = iter(self.cut), iter(sizes)
        self.windows = tuple(next(window_sizes if dim in self.window else batch_sizes) for dim in range(rank))
        self.slice_sizes = [min(1, size) for size in self.input]
        for dim, size in zip(kept, self.cut):
            self.slice_sizes[dim] = size

    def gather_numbers(self) -> str:
        """The attribute of a gather."""
        return (
            f"#stablehlo.gather<offset_dims = {self.window}, collapsed_slice_dims = {self.dropped}, "
            f"operand_batching_dims = {self.batching}, start_indices_batching_dims = {self.index_batching}, "
            f"start_index_map = {self.index_map}, index_vector_dim = {self.vector}>"
        )

    def scatter_numbers(self) -> str:
        """The attribute of a scatter."""
        return (
            f"#stablehlo.scatter<update_window_dims = {self.window}, inserted_window_dims = {self.dropped}, "
            f"input_batching_dims = {self.batching}, scatter_indices_batching_dims = {self.index_batching}, "
            f"scatter_dims_to_operand_dims = {self.index_map}, index_vector_dim = {self.vector}>"
        )


def gather(draw: Draw) -> str:
    """With batching, collapsed and cut dimensions, and explicit or implicit index vectors."""
    scheme = Scheme(draw)
    attrs = f"dimension_numbers = {scheme.gather_numbers()}, slice_sizes = {array(scheme.slice_sizes)}"
    operands = [tensor(scheme.input), tensor(scheme.indices, "i32")]
    return op("stablehlo.gather", operands, [tensor(scheme.windows)], attrs)


def scatter(draw: Draw) -> str:
    """Of one to three tensors, with plain combiners and others."""
    scheme, count = Scheme(draw), draw.randint(1, 3) if draw.flag(0.3) else 1
    elements = [draw.choice(["f32", "i32", "i1"]) for _ in range(count)]
    inputs = [tensor(scheme.input, element) for element in elements]
    updates = [tensor(scheme.windows, element) for element in elements]
    attrs = f"scatter_dimension_numbers = {scheme.scatter_numbers()}"
    operands = [*inputs, tensor(scheme.indices, "i32"), *updates]
    return op("stablehlo.scatter", operands, inputs, attrs, _scatter_region(draw, elements))


def _scatter_region(draw: Draw, elements: list[str]) -> str:
    count = len(elements)
    plain = ["add", "multiply", "maximum", "minimum"]
    boolean = [*plain, "and", "or", "xor"]
    choices = boolean if "f32" not in elements else [*plain, "subtract"] if "i1" not in elements else plain
    same = [draw.choice(choices)] * count
    kind = draw.choice(["same", "same", "swapped", "mixed", "update", "old", "longer"])
    if kind == "mixed":
        return combiner(elements, [draw.choice(choices) for _ in elements])
    if kind in ("update", "old"):
        first = count if kind == "update" else 0
        return combiner(elements, same, ", ".join(f"%x{first + index}" for index in range(count)))
    text = combiner(elements, same)
    if kind == "swapped":
        return text.replace(f"(%x0, %x{count})", f"(%x{count}, %x0)")
    if kind == "longer":
        scalar = f"tensor<{elements[0]}>"
        extra = f'%z = "stablehlo.maximum"(%y0, %x0) : ({scalar}, {scalar}) -> {scalar}\n"stablehlo.return"(%z'
        return text.replace('"stablehlo.return"(%y0', extra)
    return text


KINDS: tuple[Callable[[Draw], str], ...] = (
    slice, concatenate, pad, dynamic_slice, dynamic_update_slice, gather, scatter,
)  # fmt: skip
