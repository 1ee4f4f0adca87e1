from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jaxlib.mlir import ir

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import UnsupportedVersionError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.codecs import ANY_OP, CODECS
from pyshardy.ir.context import make_context
from pyshardy.ir.symbol_paths import symbols_in
from pyshardy.rules.notation import parse_rule
from support.reference import jaxlib_version

needs_kinds = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older dialects know sums alone")
older_only = pytest.mark.skipif(jaxlib_version() >= (0, 12), reason="this dialect knows all kinds of reductions")


@pytest.fixture
def table() -> Iterator[AttrTable]:
    """A table, with its context entered."""
    with make_context(allow_unregistered_dialects=True), ir.Location.unknown():
        yield AttrTable()


X, Y = AxisRef("x"), AxisRef("y")
SHARDINGS = [
    "<@m, []>",
    "<@m, [{}, {?}]>",
    '<@m, [{"x"}, {"y", ?}]>',
    '<@m, [{"x", "y"}p2, {?}p1]>',
    '<@m, [{"x":(1)2, "y":(2)4}]>',
    '<@m, [{"x"}], replicated={"y"}>',
    '<@m, [{?}], replicated={"x":(1)2}, unreduced={"y"}>',
    '<@m, [{}], unreduced={"x":(2)2, "y"}>',
    '<@"a \\22 b", [{"a \\22 b"}]>',
    '<mesh<["x"=2, "y"=4]>, [{"x"}]>',
    '<mesh<["x"=2], device_ids=[1, 0]>, [{"x"}]>',
    "<mesh<[], device_ids=[3]>, []>",
    "<mesh<[]>, [{}]>",
]
MESHES = [
    '<["x"=2]>',
    '<["x"=2, "y"=4]>',
    "<[]>",
    "<[], device_ids=[3]>",
    '<["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>',
    '<["a \\22 b"=1]>',
]
RULES = [
    "<([i, j])->([i, j]) {i=8, j=4}>",
    "<([i, k], [k, j])->([i, j]) {i=8, j=4, k=2} reduction={k}>",
    "<([ij])->([i, j]) {i=2, j=4}>",
    "<([i, j], [])->([]) {i=2, j=1} reduction={i} need_replication={j}>",
    "<([i, j])->([i, j]) {i=2, j=4} permutation={i} blocked_propagation={j}>",
    "<([i])->([i]) {i=8}, custom>",
]
AXIS_LISTS: list[tuple[str, Any]] = [
    ("{}", ()),
    ('{"x"}', (X,)),
    ('{"x", "y":(2)4}', (X, AxisRef("y", 2, 4))),
]
AXES_PER_DIM: list[tuple[str, Any]] = [
    ("[]", ()),
    ("[{}]", ((),)),
    ('[{"x"}, {}, {"y", "x":(1)2}]', ((X,), (), (Y, AxisRef("x", 1, 2)))),
]


def _cases() -> Iterator[tuple[str, str, str, Any]]:
    """Op, attribute, its text, and the value that it becomes."""
    for text in SHARDINGS:
        value = parse_sharding(text)
        for op in ("sdy.sharding_constraint", "sdy.reshard", "sdy.data_flow_edge"):
            yield op, "sharding", f"#sdy.sharding{text}", value
        for op in (
            "all_gather", "all_slice", "all_to_all", "collective_permute", "all_reduce", "reduce_scatter",
            "sharded_to_unreduced", "replicated_to_unreduced",
        ):  # fmt: skip
            yield f"sdy.{op}", "out_sharding", f"#sdy.sharding{text}", value
    for texts in (SHARDINGS[:1], SHARDINGS[1:3], SHARDINGS, []):
        whole = f"#sdy.sharding_per_value<[{', '.join(texts)}]>"
        values = tuple(map(parse_sharding, texts))
        yield "stablehlo.sine", "sdy.sharding", whole, values
        yield "func.call", "sdy.sharding", whole, values
        for op in ("sdy.manual_computation", "sdy.named_computation"):
            yield op, "in_shardings", whole, values
            yield op, "out_shardings", whole, values
    for text in MESHES:
        yield "sdy.mesh", "mesh", f"#sdy.mesh{text}", None
    for text in RULES:
        yield "stablehlo.sine", "sdy.sharding_rule", f"#sdy.op_sharding_rule{text}", parse_rule(text)
    for text, value in AXIS_LISTS:
        for op, name in (("all_reduce", "reduction_axes"), ("replicated_to_unreduced", "axes")):
            yield f"sdy.{op}", name, f"#sdy<axis_ref_list{text}>", value
    for text, value in AXES_PER_DIM:
        for op, name in (
            ("all_gather", "gathering_axes"),
            ("all_slice", "slicing_axes"),
            ("reduce_scatter", "reduce_scatter_axes"),
            ("sharded_to_unreduced", "axes"),
        ):
            yield f"sdy.{op}", name, f"#sdy<list_of_axis_ref_lists{text}>", value
    for text, value in (("", ()), ('"x"', ("x",)), ('"x", "a \\22 b"', ("x", 'a " b'))):
        yield "sdy.manual_computation", "manual_axes", f"#sdy<manual_axes{{{text}}}>", value
    for value in (-3, 0, 2**40):
        yield "sdy.sharding_group", "group_id", f"{value} : i64", value
    for op in ("all_reduce", "reduce_scatter"):
        yield f"sdy.{op}", "reduction_op", "1 : i32", 1
    yield "sdy.propagation_barrier", "allowed_direction", "2 : i32", 2
    yield "sdy.named_computation", "name", '"a \\22 b"', 'a " b'
    yield "func.func", "sdy.original_func_name", '"f"', "f"
    yield "func.call", "callee", '@"a \\22 b"', 'a " b'
    for op in ("builtin.module", "func.func", "sdy.mesh"):
        yield op, "sym_name", '"f"', "f"
        yield op, "sym_visibility", '"private"', "private"


CASES = list(_cases())


@pytest.mark.parametrize(("op", "name", "text", "value"), CASES)
def test_writing_undoes_reading(table: AttrTable, op: str, name: str, text: str, value: Any) -> None:
    attr = ir.Attribute.parse(text)
    decoded = table.decode_attrs(op, [(name, attr)])
    if value is None:
        assert isinstance(decoded[name], Mesh)
    else:
        assert decoded == {name: value}
        assert type(decoded[name]) is type(value)
    if op == "func.func":
        decoded = decoded.with_value("function_type", ir.Attribute.parse("() -> ()"))
    assert table.encode_attrs(op, decoded)[name] == attr
    fresh = AttrTable().encode_attrs(op, decoded)[name]
    assert fresh == attr
    assert str(fresh) == str(attr)


def test_every_attribute_that_is_read_has_a_case() -> None:
    covered = {(op, name) for op, name, _, _ in CASES}
    known = {(op, name) for op, codecs in CODECS.items() for name in codecs}
    assert known <= covered
    assert {name for _, name in covered} >= set(ANY_OP)


@needs_kinds
@pytest.mark.parametrize("kind", ["max", "min"])
def test_other_reductions_than_sums(table: AttrTable, kind: str) -> None:
    attr = ir.Attribute.parse(f'#sdy.sharding<@m, [{{}}], unreduced={kind}{{"x"}}>')
    decoded = table.decode_attrs("sdy.reshard", [("sharding", attr)])
    assert decoded["sharding"].reduction.value == kind
    assert table.encode_attrs("sdy.reshard", decoded)["sharding"] == attr


@older_only
def test_what_the_dialect_cannot_hold_is_refused_with_its_text(table: AttrTable) -> None:
    sharding = parse_sharding('<@m, [{}], unreduced=max{"x"}>')
    for attrs, text in (
        ({"sharding": sharding}, str(sharding)),
        ({"sdy.sharding": (sharding, sharding)}, f"<[{sharding}, {sharding}]>"),
    ):
        with pytest.raises(UnsupportedVersionError) as caught:
            table.encode_attrs("sdy.reshard", attrs)
        assert caught.value.got == text


@pytest.mark.parametrize("text", ["1 : i32", "unit", "[@a, {b = 2 : i8}]", "#sdy<manual_axes{}>", '#t.attr<"x">'])
def test_other_attributes_stay_as_they_are(table: AttrTable, text: str) -> None:
    attr = ir.Attribute.parse(text)
    for op in ("stablehlo.sine", "t.op", "sdy.mesh"):
        decoded = table.decode_attrs(op, [("other", attr)])
        assert decoded["other"] is attr
        assert table.encode_attrs(op, decoded)["other"] is attr


def test_attributes_of_one_op_mean_nothing_on_another(table: AttrTable) -> None:
    attr = ir.Attribute.parse("#sdy.sharding<@m, []>")
    assert table.decode_attrs("stablehlo.sine", [("sharding", attr)])["sharding"] is attr


def test_the_order_of_attributes_is_kept(table: AttrTable) -> None:
    one = ir.Attribute.parse("1 : i32")
    decoded = table.decode_attrs("t.op", [("b", one), ("a", one)])
    assert list(decoded) == ["b", "a"]
    assert list(table.encode_attrs("t.op", decoded)) == ["b", "a"]


def test_equal_attributes_are_read_and_built_once(table: AttrTable) -> None:
    text = '#sdy.sharding_per_value<[<@m, [{"x"}]>]>'
    first, second = (
        table.decode_attrs("t.op", [("sdy.sharding", ir.Attribute.parse(text))])["sdy.sharding"] for _ in range(2)
    )
    assert first is second
    built = [table.encode_attrs("t.op", {"sdy.sharding": first})["sdy.sharding"] for _ in range(2)]
    assert built[0] is built[1]


def test_equal_values_of_different_attributes_are_kept_apart(table: AttrTable) -> None:
    group = table.encode_attrs("sdy.sharding_group", {"group_id": 1})["group_id"]
    barrier = table.encode_attrs("sdy.propagation_barrier", {"allowed_direction": 1})["allowed_direction"]
    assert (str(group), str(barrier)) == ("1 : i64", "1 : i32")
    name = table.encode_attrs("func.func", {"sym_name": "f", "function_type": group})["sym_name"]
    callee = table.encode_attrs("func.call", {"callee": "f"})["callee"]
    assert (str(name), str(callee)) == ('"f"', "@f")


def test_attributes_of_arguments_and_results(table: AttrTable) -> None:
    arguments = ir.Attribute.parse('[{sdy.sharding = #sdy.sharding<@m, [{"x"}]>, a.b = 1 : i32}, {}]')
    results = ir.Attribute.parse("[{a.b}]")
    type = ir.Attribute.parse("(i32, i32) -> i32")
    items = [("arg_attrs", arguments), ("res_attrs", results), ("function_type", type)]
    decoded = table.decode_attrs("func.func", items)
    assert decoded == {
        "arg_attrs": ({"sdy.sharding": parse_sharding('<@m, [{"x"}]>'), "a.b": ir.Attribute.parse("1 : i32")}, {}),
        "res_attrs": ({"a.b": ir.Attribute.parse("unit")},),
        "function_type": type,
    }
    assert table.encode_attrs("func.func", decoded) == dict(items)
    assert decoded["arg_attrs"][1] == {}  # what is written is not changed


def test_equal_attributes_of_arguments_are_one_object(table: AttrTable) -> None:
    attr = ir.Attribute.parse("[{a.b}]")
    first, second = (table.decode_attrs("func.func", [("arg_attrs", attr)])["arg_attrs"] for _ in range(2))
    assert first[0] is second[0]


def test_attributes_of_arguments_go_when_all_are_empty(table: AttrTable) -> None:
    type = ir.Attribute.parse("(i32) -> ()")
    written = table.encode_attrs("func.func", {"arg_attrs": [{}], "res_attrs": [], "function_type": type})
    assert written == {"function_type": type}


def test_the_type_of_a_function_may_be_given_by_the_types_of_its_values(table: AttrTable) -> None:
    types = [table.type(ir.Type.parse(text)) for text in ("tensor<8xf32>", "i1")]
    written = table.encode_attrs("func.func", {"function_type": (types, types[:1])})
    assert str(written["function_type"]) == "(tensor<8xf32>, i1) -> tensor<8xf32>"


def test_there_is_one_object_per_type(table: AttrTable) -> None:
    first, second = (table.type(ir.Type.parse("tensor<8xf32>")) for _ in range(2))
    assert first is second
    assert first is not table.type(ir.Type.parse("tensor<8xf64>"))


@pytest.mark.parametrize("element", ["f32", "complex<f64>", "!quant.uniform<i8:f32, 5.000000e-01>"])
def test_tensor_types_of_another_shape(table: AttrTable, element: str) -> None:
    like = table.type(ir.Type.parse(f"tensor<8x?x{element}>"))
    found = table.ranked_type((2, 3), like)
    assert str(found) == f"tensor<2x3x{element}>"
    assert found is table.type(ir.Type.parse(f"tensor<2x3x{element}>"))
    assert found.shape == (2, 3)


def test_texts_are_parsed_once(table: AttrTable) -> None:
    assert table.parse("[1, 2]") is table.parse("[1, 2]")
    assert str(table.parse("[1, 2]")) == "[1, 2]"


def test_a_text_that_is_no_attribute_is_refused(table: AttrTable) -> None:
    with pytest.raises(ir.MLIRError):
        table.parse("#")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@a", [("a",)]),
        ("@a::@b", [("a", "b")]),
        ('@"a \\22 \\\\b"', [('a " \\b',)]),
        ("[@a, [1, @b], {c = @c}]", [("a",), ("b",), ("c",)]),
        ("{x = @a, y = {z = [@b]}}", [("a",), ("b",)]),
        ("#sdy.sharding<@m, []>", [("m",)]),
        ('#sdy.sharding_per_value<[<@"m 1", []>, <@m, []>]>', [("m 1",), ("m",)]),
        ('#sdy.sharding<@m, [{"@a", "b @c"}], replicated={"x \\22 @d"}>', [("m",)]),
        ('#t.attr<@a, "x", @b>', []),  # MLIR does not know what is in there either
        ('"@a"', []),
        ("1 : i32", []),
        ("unit", []),
        ("f32", []),
        ("dense<1> : tensor<2xi32>", []),
        ("dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>", []),
    ],
)
def test_symbols_in_mlir_attributes(table: AttrTable, text: str, names: list[tuple[str, ...]]) -> None:
    assert symbols_in(ir.Attribute.parse(text)) == names


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (parse_sharding("<@m, [{}]>"), [("m",)]),
        (parse_sharding('<mesh<["x"=2]>, [{"x"}]>'), []),
        ((parse_sharding("<@m, []>"), parse_sharding("<@n, []>")), [("m",), ("n",)]),
        ([{"sdy.sharding": parse_sharding("<@m, []>")}, {}, {"a": 1}], [("m",)]),
        ("name", []),
        (3, []),
        ((X, Y), []),
        (Mesh([("x", 2)]), []),
    ],
)
def test_symbols_in_values(value: Any, names: list[tuple[str, ...]]) -> None:
    assert symbols_in(value) == names


@pytest.mark.parametrize("rows", [[(0, 1), (2, 3)], [(7,)], [(1,), (0,)], [(0, 0)], [(5, 2, 2**40)], [(0, 1)] * 40])
def test_lists_of_devices_are_what_their_text_says(rows: list[tuple[int, ...]], table: AttrTable) -> None:
    text = f"dense<{list(map(list, rows))}> : tensor<{len(rows)}x{len(rows[0])}xi64>"
    assert table.device_rows(rows) == ir.Attribute.parse(text)


@pytest.mark.parametrize("values, element", [((-1, 2), "i32"), ((-1,), "i32"), ((2**40, -3), "i64"), ((), "i64")])
def test_integers_are_what_their_text_says(values: tuple[int, ...], element: str, table: AttrTable) -> None:
    text = f"dense<{list(values)}> : tensor<{len(values)}x{element}>"
    assert table.integers(values, (len(values),), element) == ir.Attribute.parse(text)
