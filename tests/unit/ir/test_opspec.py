from __future__ import annotations

from collections.abc import Iterator

import pytest
from jaxlib.mlir import ir

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.context import make_context
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.read import read_module
from pyshardy.rules.dimension_numbers import ConvolutionNumbers, DotNumbers, GatherNumbers
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.table import rule_of

PAIR = "(tensor<8x16xf32>, tensor<8x16xf32>)"
TYPES = {"%a": "8x16xf32", "%b": "8x16xf32", "%f": "f32", "%n": "7x1xi32"}
ADD = (
    "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
    "%z = stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %z : tensor<f32>"
)
GATHER = "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
SCATTER = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with make_context(), ir.Location.unknown():
        yield


def ops(body: str, name: str) -> list[Op]:
    """The ops of a name in a function on the values of `TYPES` and a token %t."""
    arguments = "".join(f"{name}: tensor<{type}>, " for name, type in TYPES.items())
    text = f"func.func @main({arguments}%t: !stablehlo.token) {{\n{body}\n  return\n}}"
    return [op for op in walk(read_module(ir.Module.parse(text), AttrTable())) if op.name == name]


def spec(body: str, name: str) -> OpSpec:
    """The description of the last op of a name."""
    return OpSpecReader().spec(ops(body, name)[-1])


def test_element_wise_ops_have_name_and_shapes_alone() -> None:
    found = spec(f'%0 = "stablehlo.add"(%a, %b) {{note = "x"}} : {PAIR} -> tensor<8x16xf32>', "stablehlo.add")
    assert found is OpSpec("stablehlo.add", [(8, 16), (8, 16)], [(8, 16)])


def test_tokens_and_dynamic_sizes() -> None:
    body = '%0 = "stablehlo.custom_call"(%t) {call_target_name = "f"} : (!stablehlo.token) -> tensor<?x4xf32>'
    found = spec(body, "stablehlo.custom_call")
    assert (found.operand_shapes, found.result_shapes, found.target) == ((None,), ((-1, 4),), "f")


DOT = (
    "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
    "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>"
)
CONVOLUTION = (
    "dimension_numbers = #stablehlo.conv<[f, b]x[i, o]->[b, f]>, padding = dense<> : tensor<0x2xi64>, "
    "batch_group_count = 1 : i64, feature_group_count = 1 : i64"
)
PADDING = (
    "edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 0, -1>, interior_padding = array<i64: 0, 2>"
)
ALL_TO_ALL = (
    "split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, "
    "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
)
WINDOW = "window_dimensions = array<i64: 1, 3>, padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>"


@pytest.mark.parametrize(
    ("name", "operands", "result", "attributes", "expected"),
    [
        (
            "dot_general",
            "%a %b",
            "8xf32",
            f"dot_dimension_numbers = {DOT}",
            {"dot_dimension_numbers": DotNumbers((0,), (0,), (1,), (1,))},
        ),
        (
            "convolution",
            "%a %b",
            "16x16xf32",
            CONVOLUTION,
            {
                "dimension_numbers": ConvolutionNumbers(1, 0, (), 0, 1, (), 0, 1, ()),
                "batch_group_count": 1,
                "feature_group_count": 1,
            },
        ),
        ("transpose", "%a", "16x8xf32", "permutation = array<i64: 1, 0>", {"permutation": (1, 0)}),
        ("broadcast_in_dim", "%f", "4xf32", "broadcast_dimensions = array<i64>", {"broadcast_dimensions": ()}),
        (
            "pad",
            "%a %f",
            "9x45xf32",
            PADDING,
            {"edge_padding_low": (1, 0), "edge_padding_high": (0, -1), "interior_padding": (0, 2)},
        ),
        ("reverse", "%a", "8x16xf32", "dimensions = array<i64: 1>", {"dimensions": (1,)}),
        (
            "fft",
            "%a",
            "8x9xcomplex<f32>",
            "fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 16>",
            {"fft_length": (16,)},
        ),
        ("all_to_all", "%a", "16x8xf32", ALL_TO_ALL, {"split_dimension": 1, "concat_dimension": 0}),
        (
            "reduce_window",
            "%a %f",
            "8x16xf32",
            WINDOW,
            {"window_dimensions": (1, 3), "padding": ((0, 0), (2, 0))},
        ),
        (
            "gather",
            "%a %n",
            "7x16xf32",
            f"dimension_numbers = #stablehlo.gather<offset_dims = [1], {GATHER}>, slice_sizes = array<i64: 1, 16>",
            {"dimension_numbers": GatherNumbers((1,), (0,), index_vector=1)},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_attributes_that_rules_read(
    name: str, operands: str, result: str, attributes: str, expected: dict[str, object]
) -> None:
    types = ", ".join(f"tensor<{TYPES[operand]}>" for operand in operands.split())
    region = f" ({{{ADD}}})" if name == "reduce_window" else ""
    values = ", ".join(operands.split())
    body = f'%0 = "stablehlo.{name}"({values}){region} {{{attributes}}} : ({types}) -> tensor<{result}>'
    assert dict(spec(body, f"stablehlo.{name}").attributes) == expected


@pytest.mark.parametrize("kind", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_triangular_solve(kind: str) -> None:
    body = (
        "%k = stablehlo.constant dense<1.0> : tensor<8x8xf32>\n"
        f'%0 = "stablehlo.triangular_solve"(%k, %a) {{left_side = true, lower = true, unit_diagonal = false, '
        f"transpose_a = #stablehlo<transpose {kind}>}} : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>"
    )
    assert dict(spec(body, "stablehlo.triangular_solve").attributes) == {"left_side": True, "transpose_a": kind}


SLICE = (
    '%{} = "stablehlo.slice"(%{}) {{start_indices = array<i64: 0, 2>, limit_indices = array<i64: 8, 16>, '
    "strides = array<i64: 1, 1>}} : (tensor<8x16xf32>) -> tensor<8x14xf32>\n"
)
INNER = (
    '%{} = "stablehlo.slice"(%{}) {{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 8, 14>, '
    "strides = array<i64: 1, 1>}} : (tensor<8x14xf32>) -> tensor<8x14xf32>\n"
)
SLICES = SLICE.format("p", "a") + SLICE.format("q", "b") + INNER.format("r", "p")
WIDTHS = {"a": 16, "b": 16, "p": 14, "q": 14, "r": 14}


@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ("p a", True),  # slice(a), a
        ("p q", True),  # slice(a), slice(b)
        ("r a", False),  # slice(slice(a)), a
        ("r p", True),  # slice(slice(a)), slice(a)
        ("a a a", False),
        ("a", False),
        ("a q", False),  # a, slice(b)
        ("p", True),
        ("p a b", False),
    ],
)
def test_concatenation_of_slices(joined: str, expected: bool) -> None:
    names = joined.split()
    operands = ", ".join(f"%{name}" for name in names)
    types = ", ".join(f"tensor<8x{WIDTHS[name]}xf32>" for name in names)
    result = f"tensor<8x{sum(WIDTHS[name] for name in names)}xf32>"
    body = f'{SLICES}%0 = "stablehlo.concatenate"({operands}) {{dimension = 1 : i64}} : ({types}) -> {result}'
    assert spec(body, "stablehlo.concatenate").attributes == (("dimension", 1), ("joins_slices", expected))


def scatter(region: str, element: str = "f32", count: int = 1) -> OpSpec:
    """The description of a scatter; `region` is on scalars %x0 ... (old) and %y0 ... (updates)."""
    inputs, updates = ([f"%{letter}{index}" for index in range(count)] for letter in "ou")
    big, small, scalar = f"tensor<8x16x{element}>", f"tensor<7x16x{element}>", f"tensor<{element}>"
    constants = "".join(
        f"{name} = stablehlo.constant dense<{'true' if element == 'i1' else 1}> : {type}\n"
        for names, type in ((inputs, big), (updates, small))
        for name in names
    ).replace("<1>", "<1.0>" if element == "f32" else "<1>")
    args = ", ".join(f"%{letter}{index}: {scalar}" for letter in "xy" for index in range(count))
    types = ", ".join([*[big] * count, "tensor<7x1xi32>", *[small] * count])
    target = "%0" if count == 1 else f"%0:{count}"
    body = (
        f'{constants}{target} = "stablehlo.scatter"({", ".join([*inputs, "%n", *updates])}) ({{\n^bb0({args}):\n'
        f"{region.replace('TYPE', scalar)}\n}}) {{scatter_dimension_numbers = #stablehlo.scatter<"
        f"update_window_dims = [1], {SCATTER}>}} : ({types}) -> ({', '.join([big] * count)})"
    )
    return spec(body, "stablehlo.scatter")


@pytest.mark.parametrize(
    ("region", "element", "expected"),
    [
        ("%z = stablehlo.add %x0, %y0 : TYPE\nstablehlo.return %z : TYPE", "f32", True),
        ("%z = stablehlo.multiply %y0, %x0 : TYPE\nstablehlo.return %z : TYPE", "i32", True),
        ("%z = stablehlo.minimum %x0, %y0 : TYPE\nstablehlo.return %z : TYPE", "f32", True),
        ("%z = stablehlo.and %x0, %y0 : TYPE\nstablehlo.return %z : TYPE", "i1", True),
        ("%z = stablehlo.or %x0, %y0 : TYPE\nstablehlo.return %z : TYPE", "i1", True),
        ("%z = stablehlo.and %x0, %y0 : TYPE\nstablehlo.return %z : TYPE", "i32", False),
        ("%z = stablehlo.xor %x0, %y0 : TYPE\nstablehlo.return %z : TYPE", "i1", False),
        ("%z = stablehlo.subtract %x0, %y0 : TYPE\nstablehlo.return %z : TYPE", "f32", False),
        ("%z = stablehlo.add %x0, %x0 : TYPE\nstablehlo.return %z : TYPE", "f32", False),
        ("stablehlo.return %y0 : TYPE", "f32", False),
        ("stablehlo.return %x0 : TYPE", "f32", False),
        ("%w = stablehlo.negate %y0 : TYPE\nstablehlo.return %w : TYPE", "f32", False),
        (
            "%w = stablehlo.negate %y0 : TYPE\n%z = stablehlo.add %x0, %w : TYPE\nstablehlo.return %z : TYPE",
            "f32",
            False,
        ),
    ],
)
def test_plain_combiners(region: str, element: str, expected: bool) -> None:
    found = scatter(region, element)
    assert found.attr("plain_combiner") is expected
    assert found.attr("scatter_dimension_numbers") == GatherNumbers((1,), (0,), index_vector=1)


@pytest.mark.parametrize(("ops", "expected"), [(("add", "add"), True), (("add", "maximum"), False)])
def test_plain_combiners_of_several_inputs(ops: tuple[str, str], expected: bool) -> None:
    lines = [f"%z{index} = stablehlo.{op} %x{index}, %y{index} : TYPE" for index, op in enumerate(ops)]
    found = scatter("\n".join([*lines, "stablehlo.return %z0, %z1 : TYPE, TYPE"]), count=2)
    assert found.attr("plain_combiner") is expected


def test_crossed_inputs_are_no_plain_combiner() -> None:
    lines = ["%z0 = stablehlo.add %x0, %y1 : TYPE", "%z1 = stablehlo.add %x1, %y0 : TYPE"]
    found = scatter("\n".join([*lines, "stablehlo.return %z0, %z1 : TYPE, TYPE"]), count=2)
    assert found.attr("plain_combiner") is False


@pytest.mark.parametrize("feeds", [False, True])
def test_x64_combine(feeds: bool) -> None:
    body = (
        "%k = stablehlo.constant dense<1> : tensor<2xui32>\n"
        '%0 = "stablehlo.custom_call"(%k, %k) {call_target_name = "X64Combine"} '
        ": (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui64>\n"
    )
    user = "rng_bit_generator" if feeds else "optimization_barrier"
    extra = " {rng_algorithm = #stablehlo<rng_algorithm DEFAULT>}" if feeds else ""
    results = "%1:2" if feeds else "%1", "(tensor<2xui64>, tensor<4xui32>)" if feeds else "tensor<2xui64>"
    body += f'{results[0]} = "stablehlo.{user}"(%0){extra} : (tensor<2xui64>) -> {results[1]}'
    assert spec(body, "stablehlo.custom_call").attr("feeds_rng") is feeds


def test_only_x64_combine_looks_at_its_users() -> None:
    body = '%0 = "stablehlo.custom_call"(%a) {call_target_name = "f"} : (tensor<8x16xf32>) -> tensor<8x16xf32>'
    assert spec(body, "stablehlo.custom_call").attributes == (("call_target_name", "f"),)


def test_the_description_follows_changes_of_the_op() -> None:
    (op,) = ops(f'%0 = "stablehlo.add"(%a, %b) : {PAIR} -> tensor<8x16xf32>', "stablehlo.add")
    reader = OpSpecReader()
    before = reader.spec(op)
    op.name = "stablehlo.subtract"
    assert before.name == "stablehlo.add"
    assert reader.spec(op) is OpSpec("stablehlo.subtract", [(8, 16), (8, 16)], [(8, 16)])


def test_an_attribute_is_decoded_once() -> None:
    line = '%{} = "stablehlo.transpose"(%a) {{permutation = array<i64: 1, 0>}} : (tensor<8x16xf32>) -> tensor<16x8xf32>'
    first, second = ops(f"{line.format(0)}\n{line.format(1)}", "stablehlo.transpose")
    reader = OpSpecReader()
    assert reader.spec(first) is reader.spec(second)
    assert reader.spec(first).attr("permutation") is reader.spec(second).attr("permutation")
    assert str(rule_of(reader.spec(first))) == "<([j, i])->([i, j]) {i=16, j=8}>"
