"""Random valid instances of every op that has a rule, and of some that have none, as MLIR text.

`KINDS` maps a name to a function from a `Draw` to the text of one function; `module_of` joins such texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from . import rule_instances_calls, rule_instances_indexed, rule_instances_windows
from .draw import Draw, array, combiner, function, op, op_line, replaced, tensor

MESH = 'sdy.mesh @mesh = <["x"=2]>\n'
_UNARY = """
    abs cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic negate round_nearest_afz
    round_nearest_even rsqrt sign sine sqrt tan tanh
""".split()  # noqa: SIM905 (a table of words)
_BINARY = "add atan2 divide maximum minimum multiply power remainder subtract".split()  # noqa: SIM905
_INTEGER_UNARY = ("count_leading_zeros", "not", "popcnt")
_INTEGER_BINARY = ("and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical")
_TYPED = {
    "compare": ("f32 f32", "i1", "comparison_direction = #stablehlo<comparison_direction LT>"),
    "complex": ("f32 f32", "complex<f32>", ""),
    "convert": ("f32", "i32", ""),
    "imag": ("complex<f32>", "f32", ""),
    "is_finite": ("f32", "i1", ""),
    "real": ("complex<f32>", "f32", ""),
    "reduce_precision": ("f32", "f32", "exponent_bits = 5 : i32, mantissa_bits = 10 : i32"),
    "collective_broadcast": ("f32", "f32", "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"),
    "collective_permute": ("f32", "f32", "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>"),
    "cross-replica-sum": ("f32", "f32", "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"),
}


def pointwise(draw: Draw) -> str:
    """An element-wise op on equal shapes."""
    shape = draw.shape()
    choice = draw.choice(["float", "integer", "typed"])
    if choice == "typed":
        name = draw.choice(sorted(_TYPED))
        operands, result, attrs = _TYPED[name]
    else:
        unary, binary = (_UNARY, _BINARY) if choice == "float" else (_INTEGER_UNARY, _INTEGER_BINARY)
        result, attrs = ("f32", "") if choice == "float" else ("i32", "")
        name = draw.choice([*unary, *binary])
        operands = f"{result} {result}" if name in binary else result
    types = [tensor(shape, element) for element in operands.split()]
    return op(f"stablehlo.{name}", types, [tensor(shape, result)], attrs)


def sharding_constraint(draw: Draw) -> str:
    """A constraint, of any rank."""
    shape = draw.shape()
    type = tensor(shape)
    attrs = f"sharding = #sdy.sharding<@mesh, [{', '.join(['{?}'] * len(shape))}]>"
    return op("sdy.sharding_constraint", [type], [type], attrs)


def select(draw: Draw) -> str:
    """A select, sometimes with a scalar predicate."""
    shape = draw.shape()
    value = tensor(shape)
    predicate = tensor(() if draw.flag(0.3) else shape, "i1")
    return op("stablehlo.select", [predicate, value, value], [value])


def clamp(draw: Draw) -> str:
    """A clamp, sometimes with scalar bounds."""
    shape = draw.shape()
    low, high = (tensor(() if draw.flag(0.3) else shape) for _ in range(2))
    return op("stablehlo.clamp", [low, tensor(shape), high], [tensor(shape)])


def batch_norm_inference(draw: Draw) -> str:
    """A normalisation over any feature dimension."""
    shape = draw.shape(min_rank=1)
    feature = draw.randrange(len(shape))
    vectors = [tensor((shape[feature],))] * 4
    attrs = f"epsilon = 0.1 : f32, feature_index = {feature} : i64"
    return op("stablehlo.batch_norm_inference", [tensor(shape), *vectors], [tensor(shape)], attrs)


def bitcast_convert(draw: Draw) -> str:
    """To elements of the same, a larger or a smaller width."""
    shape = draw.shape()
    narrow, parts = draw.choice([("i8", 4), ("i16", 2), ("f32", None)])
    wide, split = tensor(shape, "i32"), tensor(shape if parts is None else (*shape, parts), narrow)
    operand, result = draw.shuffled([wide, split])
    return op("stablehlo.bitcast_convert", [operand], [result])


def broadcast_in_dim(draw: Draw) -> str:
    """With dimensions in any order, some of them grown from 1."""
    result = draw.shape()
    dims = draw.shuffled(draw.subset(range(len(result))))
    operand = [1 if draw.flag(0.3) else result[dim] for dim in dims]
    attrs = f"broadcast_dimensions = {array(dims)}"
    return op("stablehlo.broadcast_in_dim", [tensor(operand)], [tensor(result)], attrs)


def transpose(draw: Draw) -> str:
    """Any permutation."""
    shape = draw.shape()
    order = draw.shuffled(range(len(shape)))
    result = tensor([shape[dim] for dim in order])
    return op("stablehlo.transpose", [tensor(shape)], [result], f"permutation = {array(order)}")


def reverse(draw: Draw) -> str:
    """Of any dimensions."""
    shape = draw.shape()
    dims = draw.shuffled(draw.subset(range(len(shape))))
    return op("stablehlo.reverse", [tensor(shape)], [tensor(shape)], f"dimensions = {array(dims)}")


def reshape(draw: Draw) -> str:
    """Between shapes that share factors, or hardly any."""
    shape = draw.shape()
    return op("stablehlo.reshape", [tensor(shape)], [tensor(draw.regrouped(shape))])


def dot(draw: Draw) -> str:
    """Of vectors and matrices."""
    inner, lhs, rhs = draw.size(), draw.shape(max_rank=1), draw.shape(max_rank=1)
    return op("stablehlo.dot", [tensor((*lhs, inner)), tensor((inner, *rhs))], [tensor(lhs + rhs)])


def dot_general(draw: Draw) -> str:
    """With batching and contracting dimensions anywhere."""
    batch, inner = draw.shape(max_rank=2), draw.shape(max_rank=2)
    sides, free = [], []
    for _ in range(2):
        own = draw.shape(max_rank=2)
        order = draw.shuffled(range(len(batch + inner + own)))
        sizes = [(batch + inner + own)[which] for which in order]
        place = [order.index(which) for which in range(len(order))]
        sides.append((sizes, place[: len(batch)], place[len(batch) : len(batch + inner)]))
        taken = sides[-1][1] + sides[-1][2]
        free += [size for dim, size in enumerate(sizes) if dim not in taken]
    (lhs, lhs_batch, lhs_inner), (rhs, rhs_batch, rhs_inner) = sides
    numbers = (
        f"#stablehlo.dot<lhs_batching_dimensions = {lhs_batch}, rhs_batching_dimensions = {rhs_batch}, "
        f"lhs_contracting_dimensions = {lhs_inner}, rhs_contracting_dimensions = {rhs_inner}>"
    )
    attrs = f"dot_dimension_numbers = {numbers}"
    return op("stablehlo.dot_general", [tensor(lhs), tensor(rhs)], [tensor([*batch, *free])], attrs)


def cholesky(draw: Draw) -> str:
    """Of a batch of square matrices."""
    size = draw.size()
    type = tensor((*draw.shape(max_rank=2), size, size))
    return op("stablehlo.cholesky", [type], [type])


def triangular_solve(draw: Draw) -> str:
    """From either side, with every kind of transposition."""
    batch, size, other = draw.shape(max_rank=2), draw.size(), draw.size()
    left = draw.flag()
    kind = draw.choice(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
    b = tensor((*batch, size, other) if left else (*batch, other, size))
    attrs = (
        f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, "
        f"transpose_a = #stablehlo<transpose {kind}>"
    )
    return op("stablehlo.triangular_solve", [tensor((*batch, size, size)), b], [b], attrs)


def fft(draw: Draw) -> str:
    """Of one to three dimensions, real and complex."""
    batch, length = draw.shape(max_rank=2), draw.shape(1, 3, low=1)
    kind = draw.choice(["FFT", "IFFT", "RFFT", "IRFFT"])
    half = (*batch, *length[:-1], length[-1] // 2 + 1)
    operand = tensor(half if kind == "IRFFT" else batch + length, "f32" if kind == "RFFT" else "complex<f32>")
    result = tensor(half if kind == "RFFT" else batch + length, "f32" if kind == "IRFFT" else "complex<f32>")
    attrs = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {array(length)}"
    return op("stablehlo.fft", [operand], [result], attrs)


def reduce(draw: Draw) -> str:
    """Of one to three tensors over any dimensions."""
    shape, count = draw.shape(), draw.randint(1, 3)
    elements = [draw.choice(["f32", "i32"]) for _ in range(count)]
    dims = draw.shuffled(draw.subset(range(len(shape))))
    kept = [size for dim, size in enumerate(shape) if dim not in dims]
    operands = [tensor(shape, element) for element in elements] + [tensor((), element) for element in elements]
    results = [tensor(kept, element) for element in elements]
    return op("stablehlo.reduce", operands, results, f"dimensions = {array(dims)}", combiner(elements))


def sort(draw: Draw) -> str:
    """Of one to three tensors along any dimension."""
    shape, count = draw.shape(min_rank=1), draw.randint(1, 3)
    attrs = f"dimension = {draw.randrange(len(shape))} : i64"
    args = ", ".join(f"%x{index}: tensor<f32>" for index in range(2 * count))
    compare = op_line("stablehlo.compare", ["tensor<f32>"] * 2, ["tensor<i1>"], _TYPED["compare"][2], names="%x0, %x1")
    region = f'^bb0({args}):\n{compare}\n"stablehlo.return"(%r) : (tensor<i1>) -> ()\n'
    line = op_line("stablehlo.sort", [tensor(shape)] * count, [tensor(shape)] * count, attrs, region)
    return function(line.replace("%r", "%s", 1), [tensor(shape)] * count)


def rng_bit_generator(draw: Draw) -> str:
    """With a state of one dimension or none."""
    algorithm = draw.choice(["DEFAULT", "THREE_FRY", "PHILOX"])
    size = 2 if algorithm != "PHILOX" else draw.choice([2, 3])
    state, bits = tensor((size,), "ui64"), tensor(draw.shape(), "ui32")
    attrs = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    return op("stablehlo.rng_bit_generator", [state], [state, bits], attrs)


def all_reduce(draw: Draw) -> str:
    """Of several tensors, none of a larger rank than the first."""
    first = draw.shape()
    types = [tensor(first), *(tensor(draw.shape(max_rank=len(first))) for _ in range(draw.randint(0, 2)))]
    attrs = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
    return op("stablehlo.all_reduce", types, types, attrs, combiner(["f32"]))


def all_gather(draw: Draw) -> str:
    """Of several tensors of one rank."""
    return _resized(draw, "all_gather", "all_gather_dim", draw.randint(1, 3), grows=True)


def reduce_scatter(draw: Draw) -> str:
    """Along any dimension."""
    return _resized(draw, "reduce_scatter", "scatter_dimension", 1, grows=False)


def _resized(draw: Draw, name: str, attr: str, count: int, grows: bool) -> str:
    rank, groups = draw.randint(1, 4), draw.randint(1, 3)
    dim = draw.randrange(rank)
    small = [replaced(draw.shape(rank, rank), dim, draw.size(low=1)) for _ in range(count)]
    large = [replaced(shape, dim, shape[dim] * groups) for shape in small]
    before, after = (small, large) if grows else (large, small)
    ids = list(range(groups))
    attrs = f"{attr} = {dim} : i64, replica_groups = dense<{[ids]}> : tensor<1x{groups}xi64>"
    region = "" if grows else combiner(["f32"])
    return op(f"stablehlo.{name}", [*map(tensor, before)], [*map(tensor, after)], attrs, region)


def all_to_all(draw: Draw) -> str:
    """Split and concatenated along any dimensions, the same one included."""
    rank, count, groups = draw.randint(1, 4), draw.randint(1, 2), draw.randint(1, 3)
    split, concat = draw.randrange(rank), draw.randrange(rank)
    before, after = [], []
    for _ in range(count):
        shape = list(draw.shape(rank, rank))
        result = list(shape)
        shape[split] *= groups
        result[concat] *= groups
        before.append(shape)
        after.append(shape if split == concat else result)
    attrs = (
        f"split_dimension = {split} : i64, concat_dimension = {concat} : i64, split_count = {groups} : i64, "
        f"replica_groups = dense<{[list(range(groups))]}> : tensor<1x{groups}xi64>"
    )
    return op("stablehlo.all_to_all", [*map(tensor, before)], [*map(tensor, after)], attrs)


def without_rule(draw: Draw) -> str:
    """Ops that have no rule."""
    shape = draw.shape(min_rank=1)
    type = tensor(shape)
    lines = [
        op_line("stablehlo.iota", [], [type], "iota_dimension = 0 : i64").replace("%r", "%i"),
        op_line("stablehlo.optimization_barrier", [type], [type]).replace("%r", "%b"),
        op_line("stablehlo.create_token", [], ["!stablehlo.token"]).replace("%r", "%t"),
        op_line("stablehlo.after_all", ["!stablehlo.token"], ["!stablehlo.token"], names="%t").replace("%r", "%u"),
        op_line("stablehlo.tuple", [type], [f"tuple<{type}>"]).replace("%r", "%p"),
        op_line("chlo.erf", [type], [type]).replace("%r", "%e"),
        op_line("stablehlo.broadcast", [type], [tensor((2, *shape))], "broadcast_sizes = array<i64: 2>"),
    ]
    return function("\n".join(draw.subset(lines[:2]) + lines[2:]), [type])


_HERE: tuple[Callable[[Draw], str], ...] = (
    pointwise, sharding_constraint, select, clamp, batch_norm_inference, bitcast_convert, broadcast_in_dim, transpose,
    reverse, reshape, dot, dot_general, cholesky, triangular_solve, fft, reduce, sort, rng_bit_generator, all_reduce,
    all_gather, reduce_scatter, all_to_all, without_rule,
)  # fmt: skip
_MODULES = (rule_instances_calls, rule_instances_indexed, rule_instances_windows)
KINDS: dict[str, Callable[[Draw], str]] = {
    make.__name__: make for make in (*_HERE, *(make for module in _MODULES for make in module.KINDS))
}


def instances(kind: str, count: int, seed: int) -> list[str]:
    """That many instances of one kind; the same ones for the same seed."""
    draw = Draw(f"{kind} {seed}")
    return [KINDS[kind](draw) for _ in range(count)]


def module_of(functions: Iterable[str]) -> str:
    """One module with a function per instance."""
    return MESH + "".join(text.replace("@NAME", f"@f{index}", 1) for index, text in enumerate(functions))
