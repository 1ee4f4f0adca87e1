"""XLA's view: the propagated module is XLA's own, op by op, and inputs and outputs are sharded as XLA compiles them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

import pyshardy
from programs import PROGRAMS, Program
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.module import Module
from support.programs import load_example, module_text
from support.reference import jaxlib_version
from support.xla import XlaFailed, XlaProcess
from tests.end_to_end.number_programs import FAMILIES

from .xla_campaign import as_jax_writes, explained
from .xla_compare import difference, normal_form, xla_view
from .xla_known import COMPLEX, ONLY_RESULT, ORDER, RETURNED_RESHAPE, known_difference

NAMES = (
    "branches", "cnn_training", "dropout_threefry", "elementwise", "lstm_training", "manual_partial", "microbatches",
    "moe_sorted_dispatch", "nested_jit", "newton", "pipeline_stages", "ring_attention", "several_meshes", "sorting",
    "transformer_scan_remat", "unet",
)  # fmt: skip
"""Programs with all that the view changes: calls, loops, branches, manual computations, CHLO, several meshes."""


BEFORE_0_12 = {
    "elementwise": "before jaxlib 0.12 XLA has no rule for erf",
    "pipeline_stages": "before jaxlib 0.12 XLA leaves out the sharding of a result that is open everywhere",
}


@pytest.fixture(scope="module")
def xla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[XlaProcess]:
    """XLA in a process of its own."""
    with XlaProcess(tmp_path_factory.mktemp("dumps") / "xla") as process:
        yield process


def text_of(name: str) -> str:
    reason = PROGRAMS[name].skip()
    if reason:
        pytest.skip(reason)
    return module_text(PROGRAMS[name])


@pytest.mark.parametrize("name", NAMES)
def test_the_propagated_module_is_xlas(name: str, xla: XlaProcess) -> None:
    if jaxlib_version() < (0, 12) and name in BEFORE_0_12:
        pytest.skip(BEFORE_0_12[name])
    text = text_of(name)
    dumps = xla.dumps(text)
    for stage in ("01", "02"):
        assert difference(xla_view(text, stage), dumps[stage]) == "", stage


def test_the_example(xla: XlaProcess) -> None:
    example = load_example("transformer")
    text = example.lower(example.Config(layers=2, width=64)).as_text()
    assert difference(xla_view(text, "02"), xla.dumps(text)["02"]) == ""


def over_meshes(*meshes: tuple[int, ...]) -> str:
    """A program that constrains a value on one mesh of eight devices after another, rows and columns in turn."""
    type_ = "tensor<48x48xf32>"
    declared, body = [], []
    for number, sizes in enumerate(meshes):
        axes = ", ".join(f'"{name}{number}"={size}' for name, size in zip("xyzw", sizes))
        declared.append(f"sdy.mesh @m{number} = <[{axes}]>")
        dims = ["{}", f'{{"x{number}"}}'][:: -1 if number % 2 else 1]
        body.append(f"%s{number} = stablehlo.negate %c{number} : {type_}")
        body.append(f"%c{number + 1} = sdy.sharding_constraint %s{number} <@m{number}, [{', '.join(dims)}]> : {type_}")
    results, types = (", ".join([one] * 2) for one in (f"%c{len(meshes)}", type_))
    head = f"func.func public @main(%c0: {type_}) -> ({types}) {{"
    lines = [*declared, head, *body, f"return {results} : {types}"]
    return "\n".join(["module @jit_f attributes {mhlo.num_partitions = 8 : i32} {", *lines, "}", "}"])


@pytest.mark.parametrize(
    "meshes",
    [
        ((4, 2), (2, 2, 2)),
        ((2, 2, 2), (4, 2)),
        ((8,), (2, 4)),
        ((4, 2), (2, 4)),
        ((8,), (8, 1)),
        ((4, 2), (1, 2, 4)),
        ((8,), (4, 2), (2, 4)),
        ((4, 2), (2, 4), (2, 2, 2)),
        ((8,), (4, 2), (2, 2, 2)),
    ],
)
def test_meshes_of_the_same_devices_become_one(meshes: tuple[tuple[int, ...], ...], xla: XlaProcess) -> None:
    text = over_meshes(*meshes)
    assert difference(xla_view(text, "01"), xla.dumps(text)["01"]) == ""


_SHARDED = '{sdy.sharding = #sdy.sharding<@mesh, [{"%s"}]>}'
_OP_SHARDED = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"%s"}]>]>}'


def through_calls(op: str, result: str, inner: str, middle: str, outer: str) -> str:
    """A result behind two calls, and the axis that shards it at every place that can say so; "" where none does."""

    def on(axis: str, form: str) -> str:
        return form % axis if axis else ""

    def type_(axis: str) -> str:
        return f"(tensor<16xf32> {on(axis, _SHARDED)})"

    counts = "mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32"
    return f"""module @jit_f attributes {{{counts}}} {{
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func public @main(%x: tensor<16xf32>) -> tensor<16xf32> {{
  %0 = call @g(%x) {on(outer, _OP_SHARDED)} : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}}
func.func private @g(%x: tensor<16xf32>) -> {type_(middle)} {{
  %0 = call @f(%x) {on(inner, _OP_SHARDED)} : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}}
func.func private @f(%x: tensor<16xf32>) -> {type_(result)} {{
  %0 = stablehlo.negate %x {on(op, _OP_SHARDED)} : tensor<16xf32>
  return %0 : tensor<16xf32>
}}
}}"""


@pytest.mark.parametrize(
    "places",
    [
        "a    ",
        " a   ",
        "  a  ",
        "   a ",
        "    a",
        "ab   ",
        " ab  ",
        " a b ",
        " a  b",
        "a  b ",
        "a   b",
        "  abc",
        "  a b",
    ],
)
def test_the_only_result_is_sharded_as_what_is_behind_calls(places: str, xla: XlaProcess) -> None:
    if jaxlib_version() < (0, 12):
        pytest.skip("older XLAs leave the sharding of the result open: docs/differences.md")
    text = through_calls(*(axis.strip() for axis in places))
    assert difference(xla_view(text, "01"), xla.dumps(text)["01"]) == ""


@pytest.mark.parametrize("kind", ["slice %0 [0:16]", "reshape %0", "convert %0"])
def test_ops_that_do_nothing_do_not_shard_the_only_result(kind: str, xla: XlaProcess) -> None:
    if jaxlib_version() < (0, 12):
        pytest.skip("older XLAs leave the sharding of the result open: docs/differences.md")
    sharded = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"AXIS"}]>]>}'
    text = f"""module @jit_f attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func public @main(%x: tensor<16xf32>) -> tensor<16xf32> {{
  %0 = call @f(%x) {sharded.replace("AXIS", "b")} : (tensor<16xf32>) -> tensor<16xf32>
  %1 = stablehlo.{kind} {sharded.replace("AXIS", "a")} : (tensor<16xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}}
func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> {{
  %0 = stablehlo.negate %x : tensor<16xf32>
  return %0 : tensor<16xf32>
}}
}}"""
    assert difference(xla_view(text, "01"), xla.dumps(text)["01"]) == ""


_T = "%t = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<4x8x4xi32>) -> tensor<8x4x4xi32>"
_RETURNED_FIRST = {
    "transpose": "%f = stablehlo.transpose %t, dims = [0, 2, 1] : (tensor<8x4x4xi32>) -> tensor<8x4x4xi32>",
    "back again": "%f = stablehlo.transpose %t, dims = [2, 0, 1] : (tensor<8x4x4xi32>) -> tensor<4x8x4xi32>",
    "elementwise": "%f = stablehlo.multiply %t, %o : tensor<8x4x4xi32>",
    "second operand": "%f = stablehlo.multiply %o, %t : tensor<8x4x4xi32>",
    "reverse": "%f = stablehlo.reverse %t, dims = [1] : tensor<8x4x4xi32>",
    "slice": "%f = stablehlo.slice %t [0:8, 0:4, 0:2] : (tensor<8x4x4xi32>) -> tensor<8x4x2xi32>",
}


@pytest.mark.parametrize("is_sharded", [True, False])
@pytest.mark.parametrize("kind", _RETURNED_FIRST)
def test_transposed_results_are_listed_behind_others_as_in_hlo(kind: str, is_sharded: bool, xla: XlaProcess) -> None:
    if is_sharded and jaxlib_version() < (0, 12):
        pytest.skip("older XLAs list a sharded result by another order")
    first = _RETURNED_FIRST[kind]
    type_ = first.rpartition(" ")[2]
    sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}, {}]>}' if is_sharded else ""
    text = f"""module @jit_f attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func public @main(%x: tensor<4x8x4xi32>, %o: tensor<8x4x4xi32>) -> ({type_} {sharding}, tensor<4x8x4xi32>) {{
  {_T}
  {first}
  %s = stablehlo.negate %x : tensor<4x8x4xi32>
  return %f, %s : {type_}, tensor<4x8x4xi32>
}}
}}"""
    assert difference(xla_view(text, "01"), xla.dumps(text)["01"]) == ""


@pytest.mark.parametrize(("family", "seed"), [("annotated", 65), ("typed", 17)])
def test_what_is_known_to_differ_shards_inputs_and_outputs_alike(family: str, seed: int, xla: XlaProcess) -> None:
    if jaxlib_version() < (0, 12):
        pytest.skip("random programs are compared with the newest XLA")
    text = as_jax_writes(Module.parse(FAMILIES[family](seed)).text())
    dump = xla.dumps(text)["02"]
    assert difference(xla_view(text, "02"), dump) != ""
    theirs = Module.parse(dump, allow_unregistered_dialects=True)
    assert normal_form(xla_view(text, "02"))[0] == normal_form(theirs)[0]


REPLACED = {
    "constant indices": """%c = stablehlo.constant dense<[2]> : tensor<1xi32>
  %0 = "stablehlo.gather"(%x, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0],
  start_index_map = [0]>, slice_sizes = array<i64: 1, 8>}> SHARDED : (tensor<4x8xf32>, tensor<1xi32>) -> tensor<8xf32>""",
    "no elements": "%0 = stablehlo.slice %x [0:0, 0:8] SHARDED : (tensor<4x8xf32>) -> tensor<0x8xf32>",
}


@pytest.mark.parametrize("kind", REPLACED)
def test_the_only_result_keeps_the_sharding_of_an_op_that_xla_replaces(kind: str, xla: XlaProcess) -> None:
    """A known difference: docs/differences.md."""
    dims = '[{"b"}]' if kind == "constant indices" else '[{}, {"b"}]'
    sharded = f"{{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {dims}>]>}}"
    op = REPLACED[kind].replace("SHARDED", sharded)
    text = f"""module @jit_f attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func public @main(%x: tensor<4x8xf32>) -> {op.rpartition(" ")[2]} {{
  {op}
  return %0 : {op.rpartition(" ")[2]}
}}
}}"""
    theirs = normal_form(Module.parse(xla.dumps(text)["01"], allow_unregistered_dialects=True))
    ours = normal_form(xla_view(text, "01"))
    assert (theirs[0], theirs[1:]) == ("main [[], []]", ours[1:])
    assert ours[0].startswith("main [[], ['<") and '{"b"}' in ours[0]


def boxes(sharding: Any, shape: tuple[int, ...]) -> dict[int, Any]:
    """Which part every device holds."""
    found = sharding.devices_indices_map(shape)
    return {device.id: [slice.indices(size) for slice, size in zip(index, shape)] for device, index in found.items()}


def wrong_ports(ports: list[InterfaceTensor], ours: list[Any], theirs: list[Any]) -> list[str]:
    """The names of the inputs or outputs that are not held as XLA compiles them."""
    assert len(ports) == len(ours) == len(theirs)
    return [
        port.name
        for port, one, other in zip(ports, ours, theirs)
        if one is not None and boxes(one, port.shape) != boxes(other, port.shape)
    ]


def compiled_and_ours(program: Program) -> tuple[list[str], list[str]]:
    lowered = program.lower()
    compiled = lowered.compile()
    result = pyshardy.propagate(pyshardy.load(lowered))
    kept = result.module.origin.kept
    ins = jax.tree.leaves(compiled.input_shardings, is_leaf=lambda leaf: leaf is None)
    ours = jax.tree.leaves(result.in_shardings, is_leaf=lambda leaf: leaf is None)
    ins = ins if len(ins) == len(kept) else [ins[leaf] for leaf in kept]
    outs = jax.tree.leaves(compiled.output_shardings)
    return (
        wrong_ports(result.inputs, [ours[leaf] for leaf in kept], ins),
        wrong_ports(result.outputs, jax.tree.leaves(result.out_shardings), outs),
    )


@pytest.mark.parametrize(
    "name", ["contrastive_training", "fully_sharded", "mlp_training", "resnet_block", "zero_optimizer"]
)
def test_inputs_and_outputs_are_sharded_as_jax_compiles_them(name: str) -> None:
    text_of(name)
    assert compiled_and_ours(PROGRAMS[name]) == ([], [])


SQUARE = """module @square {
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<8x16xf32> {
  %0 = chlo.square %a : tensor<8x16xf32> -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
}"""


def test_a_wrong_answer_is_noticed(xla: XlaProcess) -> None:
    dump = xla.dumps(SQUARE)["02"]
    assert difference(xla_view(SQUARE, "02"), dump) == ""
    assert "multiply" in difference(
        xla_view(SQUARE.replace("chlo.square", "stablehlo.negate").replace(" -> tensor<8x16xf32>\n  r", "\n  r"), "02"),
        dump,
    )
    assert difference(xla_view(SQUARE.replace('"data"}, {}', '"model"}, {}'), "02"), dump) != ""
    assert difference(xla_view(SQUARE, "02"), re.sub(r'\{"data"\}', '{"model"}', dump, count=2)) != ""
    other = re.sub(r"(sdy.mesh @\w+ = <\[.*?\])>", r"\1, device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>", dump)
    assert other != dump and difference(xla_view(SQUARE, "02"), other) != ""
    assert difference(xla_view(SQUARE, "01"), dump) != ""


def test_boxes_that_differ_are_noticed() -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    port = InterfaceTensor("x", 0, (8, 16), "f32", None)
    one, other = (
        jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)) for spec in (("data",), (None, "data"))
    )
    assert wrong_ports([port], [one], [one]) == []
    assert wrong_ports([port], [one], [other]) == ["x"]


def test_what_xla_refuses_is_an_error(xla: XlaProcess, tmp_path: Path) -> None:
    with pytest.raises(XlaFailed):
        xla.dumps(SQUARE.replace("chlo.square", "chlo.no_such_op"))
    assert "02" in xla.dumps(SQUARE)


def test_essence_tells_order_and_attributes_apart() -> None:
    module = pyshardy.load(SQUARE)
    assert normal_form(module) == normal_form(pyshardy.load(SQUARE.replace("%a", "%other").replace("%0", "%b")))
    assert normal_form(module) != normal_form(
        pyshardy.load(
            SQUARE.replace('"data"=4, "model"=2', '"data"=2, "model"=4').replace('{"data"}, {}', '{}, {"data"}')
        )
    )


REASONS = {
    ("typed", 17): RETURNED_RESHAPE, ("typed", 57): COMPLEX, ("typed", 81): ORDER, ("annotated", 65): ORDER,
    ("moving", 9): ONLY_RESULT, ("indexed", 76): ONLY_RESULT,
}  # fmt: skip


@pytest.mark.parametrize(("family", "seed"), REASONS)
def test_known_differences_have_names(family: str, seed: int, xla: XlaProcess) -> None:
    if jaxlib_version() < (0, 12):
        pytest.skip("random programs are compared with the newest XLA")
    text = as_jax_writes(Module.parse(FAMILIES[family](seed)).text())
    assert explained(xla, text, xla.dumps(text)["02"]) == REASONS[family, seed]


@pytest.mark.parametrize(("family", "seed"), REASONS)
def test_a_wrong_sharding_is_no_known_difference(family: str, seed: int) -> None:
    text = as_jax_writes(Module.parse(FAMILIES[family](seed)).text())
    ours = normal_form(xla_view(text, "02"))
    wrong = [ours[0].replace("[", '[{"wrong"}', 1), *ours[1:]]
    assert known_difference(text, wrong, ours, lambda other: False) is None


_LOST = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>}'
NO_OPS = {
    "nothing": "",
    "slice": f"%0 = stablehlo.slice %x [0:30, 0:8] {_LOST} : (tensor<30x8xf32>) -> tensor<30x8xf32>",
    "concatenate": f"%0 = stablehlo.concatenate %x, dim = 0 {_LOST} : (tensor<30x8xf32>) -> tensor<30x8xf32>",
    "transpose": f"%0 = stablehlo.transpose %x, dims = [0, 1] {_LOST} : (tensor<30x8xf32>) -> tensor<30x8xf32>",
    "call": f"%0 = func.call @f(%x) {_LOST} : (tensor<30x8xf32>) -> tensor<30x8xf32>",
    "constraint": '%0 = sdy.sharding_constraint %x <@mesh, [{}, {"b"}]> : tensor<30x8xf32>',
}


@pytest.mark.parametrize("given", ['"a", "b"', '"a", ?', "?"])
@pytest.mark.parametrize("kind", NO_OPS)
def test_the_only_result_that_is_an_argument_is_sharded_as_it_is(kind: str, given: str, xla: XlaProcess) -> None:
    if jaxlib_version() < (0, 12):
        pytest.skip("older XLAs leave the sharding of the result open: docs/differences.md")
    text = f"""module @jit_f attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["a"=4, "b"=2]>
  func.func @main(%x: tensor<30x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{{given}}}, {{}}]>}}) -> tensor<30x8xf32> {{
    {NO_OPS[kind]}
    return {"%0" if NO_OPS[kind] else "%x"} : tensor<30x8xf32>
  }}
  func.func private @f(%x: tensor<30x8xf32>) -> tensor<30x8xf32> {{ return %x : tensor<30x8xf32> }}
}}"""
    assert difference(xla_view(text, "02"), xla.dumps(text)["02"]) == ""
