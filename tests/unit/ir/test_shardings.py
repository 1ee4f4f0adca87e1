from __future__ import annotations

from collections.abc import Callable

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import (
    all_arg_shardings,
    all_result_shardings,
    block_arg_shardings,
    fill_shardings,
    get_sharding,
    holder_of,
    module_meshes,
    results_attribute,
    set_block_arg_shardings,
    set_sharding,
    sharding_attributes,
    store_sharding,
    stored_sharding,
    transform_shardings,
)

from . import data_flow_programs as programs
from .data_flow_programs import T, label, program
from .reading import args, find, read

X, Y, OPEN, CLOSED = (parse_sharding(f"<@m, [{dim}]>") for dim in ('{"x"}', '{"y"}', "{?}", "{}"))
XY = parse_sharding('<@m, [{"x", "y"}]>')
DEVICE = parse_sharding("<@device, []>")
SHARDED = {
    "sdy.sharding_constraint": ("sharding", '%0 = sdy.sharding_constraint %a <@m, [{"x"}]> : ' + T),
    "sdy.reshard": ("sharding", '%0 = sdy.reshard %a <@m, [{"x"}]> : ' + T),
    "sdy.all_slice": ("out_sharding", '%0 = sdy.all_slice [{"x"}] %a out_sharding=<@m, [{"x"}]> : ' + T),
    "stablehlo.sine": (
        "sdy.sharding",
        '%0 = stablehlo.sine %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : ' + T,
    ),
    "sdy.named_computation": (
        "out_shardings",
        programs.NAMED.replace("(%i:", 'in_shardings=[<@m, [{}]>, <@m, [{}]>] out_shardings=[<@m, [{"x"}]>] (%i:'),
    ),
    "sdy.manual_computation": ("out_shardings", programs.MANUAL),
}


def test_meshes_by_name_in_order() -> None:
    found = module_meshes(read('sdy.mesh @b = <["x"=2]> func.func @f() { return } sdy.mesh @a = <[], device_ids=[3]>'))
    assert list(found.items()) == [("b", Mesh([("x", 2)])), ("a", Mesh([], [3]))]


@pytest.mark.parametrize("name", SHARDED)
def test_where_the_sharding_of_a_result_is_stored(name: str) -> None:
    attribute, text = SHARDED[name]
    op = find(program(text), name)
    assert holder_of(op.result) is op.result
    assert get_sharding(op.result) is stored_sharding(op.result) is X
    set_sharding(op.result, Y)
    assert get_sharding(op.result) is Y
    assert op.attrs[attribute] in (Y, (Y,))
    assert attribute in sharding_attributes(op)


def test_the_sharding_of_an_argument() -> None:
    function = program("")
    first, second, *_ = args(function)
    assert get_sharding(first) is None
    set_sharding(first, X)
    assert (get_sharding(first), get_sharding(second)) == (X, None)
    assert function.attrs["arg_attrs"] == ({"sdy.sharding": X}, {}, {}, {})


def test_setting_one_of_several_results_opens_the_others() -> None:
    op = find(program(programs.CASE), "stablehlo.case")
    assert [get_sharding(result) for result in op.results] == [None, None]
    set_sharding(op.results[1], X)
    assert [get_sharding(result) for result in op.results] == [OPEN, X]
    set_sharding(op.results[0], Y)
    assert op.attrs["sdy.sharding"] == (Y, X)


def test_open_shardings_have_the_rank_of_their_value() -> None:
    op = find(
        read(
            "func.func @f(%a: tensor<2x3xf32>) { %0:2 = stablehlo.custom_call @g(%a) : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<4xf32>) return }"
        ),
        "stablehlo.custom_call",
    )
    set_sharding(op.results[1], X)
    assert op.attrs["sdy.sharding"] == (parse_sharding("<@m, [{?}, {?}]>"), X)


HOLDERS = {
    "stablehlo.while": {
        **dict.fromkeys(("while#0", "while.0.0", "while.1.0"), "while#0"),
        **dict.fromkeys(("while#1", "while.0.1", "while.1.1"), "while#1"),
    },
    "stablehlo.case": {"case#0": "case#0", "case#1": "case#1"},
    "stablehlo.if": {"if#0": "if#0"},
    "stablehlo.optimization_barrier": {f"optimization_barrier#{n}": f"optimization_barrier#{n}" for n in (0, 1)},
    **{
        f"sdy.{name}": {value: value for value in (f"{name}#0", f"{name}.0.0", f"{name}.0.1")}
        for name in ("named_computation", "manual_computation")
    },
}


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("name", programs.DATA_FLOW_OPS)
def test_what_holds_the_values_of_data_flow_ops(name: str, edges: bool) -> None:
    op = find(program(programs.DATA_FLOW_OPS[name], edges=edges), name)
    values = [*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)]
    found = {}
    for value in values:
        holder = holder_of(value)
        assert holder is not None
        is_edge = label(holder) == "data_flow_edge#0"
        assert is_edge == edges
        found[label(value)] = label(holder.defining_op.operands[0] if is_edge else holder)  # type: ignore[union-attr]
    assert found == HOLDERS[name]


def test_an_edge_holds_the_sharding_of_its_targets() -> None:
    op = find(program(programs.WHILE, edges=True), "stablehlo.while")
    set_sharding(op.regions[1].block.args[0], X)
    assert get_sharding(op.results[0]) is get_sharding(op.regions[0].block.args[0]) is X
    assert "sdy.sharding" not in op.attrs
    assert get_sharding(op.results[1]) is None


def test_the_arguments_of_a_loop_have_the_shardings_of_its_results() -> None:
    op = find(program(programs.WHILE), "stablehlo.while")
    set_sharding(op.regions[0].block.args[1], X)
    assert op.attrs["sdy.sharding"] == (OPEN, X)


def test_values_that_can_have_no_sharding() -> None:
    root = read("""func.func @f(%a: tensor<8xf32>, %z: tensor<f32>) {
      %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]
        : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      return
    }""")
    arg = find(root, "stablehlo.reduce").region.block.args[0]
    assert holder_of(arg) is None
    assert get_sharding(arg) is None
    set_sharding(arg, X)
    assert get_sharding(arg) is None
    assert find(root, "stablehlo.reduce").attrs.keys() == {"dimensions"}


def test_arguments_of_asynchronous_ops_are_those_given() -> None:
    function = program(programs.ASYNC)
    arg = find(function, "stablehlo.async_start").region.block.args[0]
    assert holder_of(arg) is args(function)[0]
    set_sharding(arg, X)
    assert get_sharding(args(function)[0]) is X


def test_arguments_of_manual_computations_are_seen_without_the_manual_axes() -> None:
    op = find(program(programs.MANUAL), "sdy.manual_computation")
    first, second = op.region.block.args
    assert (get_sharding(first), get_sharding(second)) == (Y, parse_sharding('<@m, [{"y", ?}]>'))
    assert block_arg_shardings(op) == [Y, parse_sharding('<@m, [{"y", ?}]>')]
    set_sharding(first, CLOSED)
    assert op.attrs["in_shardings"] == (X, parse_sharding('<@m, [{"y", ?}]>'))
    store_sharding(first, Y)
    assert op.attrs["in_shardings"][0] is XY


def test_setting_all_arguments_of_a_computation() -> None:
    op = find(program(programs.MANUAL), "sdy.manual_computation")
    set_block_arg_shardings(op, [CLOSED, OPEN])
    assert op.attrs["in_shardings"] == (X, OPEN)
    named = find(program(programs.NAMED), "sdy.named_computation")
    assert block_arg_shardings(named) == []
    set_block_arg_shardings(named, [X, Y])
    assert block_arg_shardings(named) == [X, Y]
    assert named.attrs["in_shardings"] == (X, Y)


def test_arguments_of_a_named_computation_without_shardings() -> None:
    op = find(program(programs.NAMED), "sdy.named_computation")
    first, second = op.region.block.args
    assert (get_sharding(first), get_sharding(second)) == (None, None)
    set_sharding(second, X)
    assert op.attrs["in_shardings"] == (OPEN, X)


@pytest.mark.parametrize(
    ("name", "attribute", "attributes"),
    [
        ("stablehlo.add", "sdy.sharding", ("sdy.sharding",)),
        ("func.call", "sdy.sharding", ("sdy.sharding",)),
        ("sdy.manual_computation", "out_shardings", ("in_shardings", "out_shardings")),
        ("sdy.named_computation", "out_shardings", ("in_shardings", "out_shardings")),
        ("sdy.reshard", "sdy.sharding", ("sharding",)),
        ("sdy.data_flow_edge", "sdy.sharding", ("sharding",)),
        ("sdy.all_reduce", "sdy.sharding", ("out_sharding",)),
        ("sdy.replicated_to_unreduced", "sdy.sharding", ("out_sharding",)),
    ],
)
def test_names_of_attributes(name: str, attribute: str, attributes: tuple[str, ...]) -> None:
    assert results_attribute(Op(name)) == attribute
    assert sharding_attributes(Op(name)) == attributes


EVERYWHERE = """sdy.mesh @m = <["x"=2, "y"=2]>
func.func private @d(tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}p7]>})
func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>},
             %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}p1]>})
    -> (tensor<8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}p2]>}) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}p3]>] out_shardings=[<@m, [{"x"}p4]>] manual_axes={}
      (%i: tensor<8xf32>) {
    %1 = sdy.reshard %i <@m, [{"x"}p5]> : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}p6]>]>} : tensor<8xf32>
  return %0, %2 : tensor<8xf32>, tensor<8xf32>
}
"""


def test_all_shardings_are_changed_in_canonical_order() -> None:
    root = read(EVERYWHERE)
    seen: list[str] = []

    def change(sharding: TensorSharding) -> TensorSharding:
        seen.append(str(sharding.dims[0]).partition("}")[2])
        return Y

    transform_shardings(root, change)
    assert seen == ["p7", "", "p1", "p2", "p3", "p4", "p5", "p6"]
    assert get_sharding(find(root, "stablehlo.sine").result) is Y
    assert get_sharding(args(find(root, "func.func", 1))[1]) is Y


@pytest.mark.parametrize(
    ("priority", "name"),
    [("p1", "func.func"), ("p3", "sdy.manual_computation"), ("p5", "sdy.reshard"), ("p6", "stablehlo.sine")],
)
def test_the_op_whose_sharding_is_refused_is_named(priority: str, name: str) -> None:
    def refuse(sharding: TensorSharding) -> TensorSharding:
        if priority in str(sharding):
            raise InvalidShardingError("changing a sharding", got=str(sharding))
        return sharding

    with pytest.raises(PassError) as caught:
        transform_shardings(read(EVERYWHERE), refuse)
    assert caught.value.diagnostic.message == f"'{name}' op changing a sharding: got <@m, [{{\"x\"}}{priority}]>"


MESHES = {"m": Mesh([("x", 2), ("y", 2)]), "n": Mesh([("x", 2)]), "device": Mesh([], [3])}


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ([None, None], None),
        ([DEVICE, None], None),
        ([X, None], (X, OPEN)),
        ([None, X], (OPEN, X)),
        ([X, Y], (X, Y)),
        ([DEVICE, X], (DEVICE, X)),
        ([None, parse_sharding('<@n, [{"x"}]>')], (parse_sharding("<@n, [{?}]>"), parse_sharding('<@n, [{"x"}]>'))),
    ],
)
def test_missing_shardings_are_open(
    given: list[TensorSharding | None], filled: tuple[TensorSharding, ...] | None
) -> None:
    values: list[Value] = args(program(""))[:2]
    assert fill_shardings(given, values, MESHES) == filled


@pytest.mark.parametrize(("kind", "all_of"), [("arg", all_arg_shardings), ("result", all_result_shardings)])
def test_shardings_of_all_arguments_and_results(kind: str, all_of: Callable[..., object]) -> None:
    sharded = ' {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}'
    inputs, results = (sharded, "") if kind == "arg" else ("", sharded)
    text = (
        f'sdy.mesh @m = <["x"=2]> func.func @f(%a: {T}{inputs}, %b: tensor<f32>) -> ({T}{results}, tensor<f32>) '
        f"{{ return %a, %b : {T}, tensor<f32> }}"
    )
    root = read(text)
    function = find(root, "func.func")
    assert all_of(function, module_meshes(root)) == (X, parse_sharding("<@m, []>"))
    other = all_result_shardings if kind == "arg" else all_arg_shardings
    assert other(function, module_meshes(root)) is None
