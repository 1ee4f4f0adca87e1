from __future__ import annotations

import pytest

from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidModuleError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program import build_program
from pyshardy.ir.program_index import FunctionResultPlace, ProgramIndex
from pyshardy.propagation.program import (
    NO_VALUE,
    Direction,
    FunctionResult,
    ManualView,
    OpKind,
    OpNode,
    Program,
    ValueInfo,
)
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.properties import Priority
from pyshardy.rules.rule import Rule

from . import data_flow_programs as programs
from .data_flow_programs import T, label
from .reading import find, function, read

X, Y, OPEN = (parse_sharding(f"<@m, [{dim}]>") for dim in ('{"x"}', '{"y"}', "{?}"))


class Built:
    """A program with its index, and its values by label."""

    def __init__(self, root: Op, *, conservative: bool = False) -> None:
        self.root = root
        program, index = build_program(root, OpSpecReader(), conservative)
        self.program: Program = program
        self.index: ProgramIndex = index

    def info(self, name: str) -> ValueInfo:
        return self.program.values[self.number(name)]

    def rules(self) -> dict[Op, Rule]:
        """The rules that are written onto the ops."""
        self.index.store_rules()
        return {op: op.attrs[RULE] for op in self.index.ops if RULE in op.attrs}

    def number(self, name: str) -> int:
        return self.labels().index(name)

    def labels(self) -> list[str]:
        return [label(value) if isinstance(value, Value) else f"result {value.result}" for value in self.index.values]

    def node(self, name: str, number: int = 0) -> OpNode:
        return [node for node in self.program.ops if node.name == name][number]

    def named(self, numbers: tuple[int, ...]) -> list[str]:
        return [self.labels()[number] for number in numbers]


def built(body: str, *, edges: bool = False) -> Built:
    root = programs.program(body, edges=edges).parent_op
    assert root is not None
    return Built(root)


def built_from(text: str, **options: bool) -> Built:
    return Built(read(programs.MESHES + text), **options)


SMALL = f"""func.func @main(%a: {T} {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}]>}}, %b: {T})
    -> ({T}, {T} {{sdy.sharding = #sdy.sharding<@m, [{{"y"}}]>}}) {{
  %0 = stablehlo.add %a, %b {{sdy.sharding = #sdy.sharding_per_value<[<@m, [{{?}}]>]>}} : {T}
  return %0, %a : {T}, {T}
}}"""


def test_ops_and_values_are_numbered_as_they_appear() -> None:
    found = built_from(SMALL)
    assert [node.name for node in found.program.ops] == ["func.func", "stablehlo.add", "func.return"]
    assert [op.name for op in found.index.ops] == [node.name for node in found.program.ops]
    assert found.labels() == ["a", "b", "add#0", "result 0", "result 1"]
    assert str(found.program) == "func.func()\n  v2 = stablehlo.add(v0, v1) <@m, [{?}]>\n  func.return(v2, v0)"


RULED = "sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=8}>"


def test_rules_that_were_there() -> None:
    assert not built_from(SMALL).index.has_rules
    add = "%0 = stablehlo.add %a, %b {"
    assert built_from(SMALL.replace(add, f"{add}{RULED}, ")).index.has_rules
    found = built_from(SMALL)
    found.root.set_attr(RULE, parse_rule("<([i])->([i]) {i=8}>"))
    assert Built(found.root).index.has_rules
    found.root.remove_attr(RULE)
    find(found.root, "sdy.mesh").set_attr(RULE, parse_rule("<([i])->([i]) {i=8}>"))
    assert Built(found.root).index.has_rules


def test_nodes() -> None:
    found = built_from(SMALL)
    rule = parse_rule("<([i], [i])->([i]) {i=8}>")
    assert found.program.ops == (
        OpNode(OpKind("func.func"), (), ()),
        OpNode(
            OpKind("stablehlo.add", rule, Priority.PASS_THROUGH, is_elementwise=True, is_erasable=True),
            (0, 1), (2,), (0, 1, 2), parent=0,
        ),
        OpNode(OpKind("func.return"), (2, 0), (), parent=0),
    )  # fmt: skip
    assert found.rules() == {find(found.root, "stablehlo.add"): rule}
    assert found.index.unknown == []


def test_values() -> None:
    found = built_from(SMALL)
    assert found.program.values == (
        ValueInfo((8,), 0, 0, (2, 1), (0, 1)),
        ValueInfo((8,), 1, 0, (1,), (0, 1)),
        ValueInfo((8,), 2, 1, (2,), (1,)),
        ValueInfo((8,), 3, 0),
        ValueInfo((8,), 4, 0),
    )


def test_shardings_and_meshes() -> None:
    found = built_from(SMALL).program
    assert found.shardings == (X, None, OPEN, None, Y)
    assert list(found.meshes) == ["m", "n"]


def test_results_of_the_main_function_take_part() -> None:
    found = built_from(SMALL + f"func.func private @f(%a: {T}) -> {T} {{ return %a : {T} }}")
    assert found.program.main_results == (FunctionResult(2, 4), FunctionResult(0, 5))
    assert found.labels()[4:] == ["result 0", "result 1", "result 0"]
    places = [place for place in found.index.values if isinstance(place, FunctionResultPlace)]
    main, other = function(found.root, "main"), function(found.root, "f")
    assert places == [FunctionResultPlace(main, 0), FunctionResultPlace(main, 1), FunctionResultPlace(other, 0)]


def test_results_without_a_static_shape_do_not_take_part() -> None:
    found = built_from(
        "func.func @main(%a: tensor<?xf32>, %t: !stablehlo.token) -> (tensor<?xf32>, !stablehlo.token) { return %a, %t : tensor<?xf32>, !stablehlo.token }"
    )
    assert found.program.main_results == ()
    assert [value.shape for value in found.program.values] == [None] * 4


def test_declarations_have_no_results() -> None:
    found = built_from(f"func.func private @f({T}) -> {T}\nfunc.func @main() {{ return }}")
    assert found.program.values == ()


def test_a_module_without_a_main_function_is_refused() -> None:
    with pytest.raises(InvalidModuleError, match="^looking for the main function"):
        built_from("func.func @f() { return } func.func @g() { return }")


def test_values_that_hold_no_sharding() -> None:
    found = built_from("""func.func @main(%a: tensor<8xf32>, %z: tensor<f32>) {
      %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]
        : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      return
    }""")
    inner = found.info("reduce.0.0")
    assert (inner.holder, inner.notified, inner.siblings) == (NO_VALUE, (), ())
    assert found.node("stablehlo.add").tensors == (NO_VALUE, NO_VALUE, found.number("add#0"))


def test_the_tensors_of_an_edge_are_its_sources_and_itself() -> None:
    found = built(programs.WHILE, edges=True)
    first, second = (found.node("sdy.data_flow_edge", number) for number in range(2))
    rule = parse_rule("<([i], [i])->([i]) {i=8}>")
    assert (first.rule, second.rule) == (rule, rule)
    assert found.named(first.tensors) == ["a", "data_flow_edge#0", "data_flow_edge#0"]
    assert first.tensors[2] == first.results[0] == second.tensors[1]
    assert second.tensors[2] == second.results[0] == first.tensors[1]
    kind = first.kind
    assert (kind.priority, kind.ignores_conservative, kind.is_erasable) == (Priority.PASS_THROUGH, True, False)


def test_an_edge_holds_all_targets() -> None:
    found = built(programs.WHILE, edges=True)
    edge = found.node("sdy.data_flow_edge").results[0]
    for name in ("while#0", "while.0.0", "while.1.0"):
        assert found.info(name).holder == edge
        assert found.info(name).notified == ()


def test_edges_of_manual_computations_have_a_view() -> None:
    found = built(programs.MANUAL, edges=True)
    views = [node.view for node in found.program.ops if node.name == "sdy.data_flow_edge"]
    assert views == [
        ManualView(True, parse_sharding('<@m, [{"x", "y"}]>'), ("x",)),
        ManualView(True, parse_sharding('<@m, [{"y", ?}]>'), ("x",)),
        ManualView(False, X, ("x",)),
    ]
    assert all(node.view is None for node in found.program.ops if node.name != "sdy.data_flow_edge")
    assert all(node.view is None for node in built(programs.NAMED, edges=True).program.ops)


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("NONE", Direction.NONE), ("FORWARD", Direction.FORWARD), ("BACKWARD", Direction.BACKWARD)],
)
def test_barriers(direction: str, expected: Direction) -> None:
    found = built(f"%0 = sdy.propagation_barrier %a allowed_direction={direction} : {T}")
    rule = parse_rule("<([i])->([i]) {i=8}>")
    assert found.node("sdy.propagation_barrier") == OpNode(
        OpKind("sdy.propagation_barrier", rule, Priority.FIXED, expected, True, True, True), (0,), (4,), (0, 4), 0
    )
    assert found.rules() == {}


def test_a_rule_on_an_op_comes_before_that_of_the_table() -> None:
    rule = "<([i], [j])->([i]) {i=8, j=8}>"
    found = built(f"%0 = stablehlo.add %a, %b {{sdy.sharding_rule = #sdy.op_sharding_rule{rule}}} : {T}")
    assert found.node("stablehlo.add").rule == parse_rule(rule)
    assert list(found.rules().values()) == [parse_rule(rule)]


def test_ops_without_a_rule() -> None:
    found = built(f"%0 = stablehlo.custom_call @odd(%a) : ({T}) -> {T}\n%1 = stablehlo.sine %0 : {T}")
    odd = find(found.root, "stablehlo.custom_call")
    assert found.index.unknown == [odd]
    node = found.node("stablehlo.custom_call")
    assert (node.rule, node.tensors) == (None, ())
    assert odd not in found.rules()


def test_conservative_rules() -> None:
    text = """func.func @main(%a: tensor<1x8x8x1xf32>, %b: tensor<3x3x1x1xf32>) {
      %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x8x8x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x8x8x1xf32>
      return
    }"""
    plain, conservative = (
        built_from(text, conservative=flag).node("stablehlo.convolution").rule for flag in (False, True)
    )
    assert plain is not None
    assert conservative is not None
    assert plain.factor_sizes.count(8) == 2
    assert 8 not in conservative.factor_sizes  # neither spatial dimension can be sharded


def test_siblings_share_a_list_of_shardings() -> None:
    found = built(programs.CASE)
    assert found.named(found.info("case#0").siblings) == ["case#1"]
    assert found.info("a").siblings == ()
    named = built(programs.NAMED)
    assert named.named(named.info("named_computation.0.1").siblings) == ["named_computation.0.0"]
    assert named.info("named_computation#0").siblings == ()


def test_users_stand_in_use_list_order() -> None:
    found = built(f"%0 = stablehlo.sine %a : {T}\n%1 = stablehlo.add %a, %a : {T}")
    assert [found.program.ops[user].name for user in found.info("a").users] == [
        "stablehlo.add",
        "stablehlo.add",
        "stablehlo.sine",
    ]


def test_groups_in_the_order_of_their_numbers() -> None:
    groups = "".join(
        f"sdy.sharding_group %{value} group_id={number} : {T}\n" for value, number in (("a", 7), ("b", 2), ("c", 7))
    )
    found = built(f"%c = stablehlo.sine %a : {T}\n{groups}")
    assert [found.named(group) for group in found.program.groups] == [["b"], ["a", "sine#0"]]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (
            "%0 = stablehlo.add %d, %d : tensor<?xf32>",
            "'stablehlo.add' op has no valid sharding rule: building a sharding rule, for stablehlo.add: got a dynamic "
            "dimension, needed operands and results of static shape\n  at stablehlo.add(?, ?) -> (?)",
        ),
        (
            f"%0 = stablehlo.custom_call @Eigh(%a) : ({T}) -> {T}",
            "'stablehlo.custom_call' op has no valid sharding rule: looking for matrices, for @Eigh: got an operand of "
            "rank 1, needed rank 2 or more\n  at stablehlo.custom_call @Eigh(8) -> (8)",
        ),
    ],
)
def test_an_op_without_a_valid_rule_is_refused(op: str, message: str) -> None:
    with pytest.raises(PassError) as caught:
        built_from(f"func.func @main(%a: {T}, %d: tensor<?xf32>) {{\n  {op}\n  return\n}}")
    assert caught.value.diagnostic.message == message
    assert caught.value.where == "-:4:8"


CALLING = f"""func.func private @f(%x: {T}) -> {T} {{
  %0 = sdy.func_data_flow_edge %x : {T}
  %1 = stablehlo.sine %0 : {T}
  return %1 : {T}
}}
func.func @main(%a: {T}) -> {T} {{
  %0 = func.call @f(%a) : ({T}) -> {T}
  %1 = sdy.func_data_flow_edge %0 : {T}
  return %1 : {T}
}}"""


def test_edges_between_functions() -> None:
    found = built_from(CALLING)
    inside, outside = (found.node("sdy.func_data_flow_edge", number) for number in range(2))
    call = found.node("func.call")
    (argument,) = (found.program.values.index(info) for info in found.program.values if info.owner == 0 and info.users)
    assert inside.operands == (argument,)
    assert inside.tensors == (call.operands[0], inside.results[0])
    assert outside.tensors == (found.node("stablehlo.sine").results[0], outside.results[0])
    assert inside.rule == outside.rule == parse_rule("<([i])->([i]) {i=8}>")


def test_an_edge_of_a_call_of_a_declaration_has_no_sources() -> None:
    found = built_from(f"""func.func private @f({T}) -> {T}
      func.func @main(%a: {T}) {{
        %0 = func.call @f(%a) : ({T}) -> {T}
        %1 = sdy.func_data_flow_edge %0 : {T}
        return
      }}""")
    edge = found.node("sdy.func_data_flow_edge")
    assert (edge.rule, edge.tensors) == (None, ())
