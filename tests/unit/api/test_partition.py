"""`load`, `propagate` and what a `Propagation` offers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir

import pyshardy
from pyshardy.core.mesh import Mesh as OurMesh
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidModuleError, InvalidShardingError, ShardyError, UsageError
from pyshardy.ir.context import make_context
from pyshardy.ir.diagnostics import PassError
from pyshardy.propagation.options import StrategyOption
from pyshardy.report.specs import Notation, format_sharding
from pyshardy.report.summary import TensorRow
from pyshardy.rules.user_rules import register_rule, unregister_rule
from support.tables import tables_in

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'


def on(sharding: str) -> str:
    return f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"


def jax_mesh() -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


def predict(params: Any, x: Any) -> Any:
    return {"y": jnp.tanh(x @ params["w1"]) @ params["w2"]}


def arguments() -> Any:
    params = {"w1": jax.ShapeDtypeStruct((64, 256), "float32"), "w2": jax.ShapeDtypeStruct((256, 64), "float32")}
    return params, jax.ShapeDtypeStruct((32, 64), "float32")


def shardings() -> Any:
    columns = NamedSharding(jax_mesh(), P(None, "model"))
    return {"w1": columns, "w2": None}, NamedSharding(jax_mesh(), P("data"))


def jitted() -> Any:
    return jax.jit(predict, in_shardings=shardings())


# Loading


def mlir_module() -> ir.Module:
    with make_context():
        return ir.Module.parse(MLP.read_text())


SOURCES: dict[str, Callable[[], Any]] = {
    "a path": lambda: MLP,
    "a path as text": lambda: str(MLP),
    "text": lambda: MLP.read_text(),
    "text in bytes": lambda: MLP.read_bytes(),
    "bytecode": lambda: pyshardy.Module.parse(MLP.read_text()).bytecode(),
    "a module of jaxlib": mlir_module,
    "an op of jaxlib": lambda: mlir_module().operation,
    "a module": lambda: pyshardy.Module.parse(MLP.read_text()),
}


@pytest.mark.parametrize("source", SOURCES)
def test_modules_are_loaded_from_wherever_they_are(source: str) -> None:
    module = pyshardy.load(SOURCES[source]())
    assert isinstance(module, pyshardy.Module)
    assert module.text(debug_info=False) == pyshardy.Module.parse(MLP.read_text()).text()


def test_a_module_is_itself() -> None:
    module = pyshardy.load(MLP)
    assert pyshardy.load(module) is module


@pytest.mark.parametrize(
    "load",
    [
        lambda: pyshardy.load(jitted().lower(*arguments())),
        lambda: pyshardy.load(jitted(), *arguments()),
        lambda: pyshardy.load(predict, *arguments(), in_shardings=shardings()),
    ],
)
def test_functions_are_loaded_jitted_lowered_or_plain(load: Callable[[], pyshardy.Module]) -> None:
    module = load()
    assert module.text() == jitted().lower(*arguments()).as_text().rstrip("\n") + "\n"
    assert module.origin is not None


def test_shardings_of_the_result_of_a_function() -> None:
    rows = NamedSharding(jax_mesh(), P("data"))
    module = pyshardy.load(lambda x: -x, np.ones((8, 4), np.float32), out_shardings=rows)
    assert '"result", sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>' in module.text()


@pytest.mark.parametrize(
    ("source", "got"),
    [(None, "None"), (3, "an int"), ([MLP], "a list"), (np.ones(3), "a ndarray")],
)
def test_what_holds_no_module_is_refused(source: Any, got: str) -> None:
    needed = "a path, StableHLO or HLO, an MLIR module, a lowered or exported JAX function, or a function"
    with pytest.raises(UsageError) as caught:
        pyshardy.load(source)
    assert str(caught.value) == f"loading a module: got {got}, needed {needed}"


@pytest.mark.parametrize("options", [{"in_shardings": ()}, {"out_shardings": ()}])
@pytest.mark.parametrize("args", [(), (1,)])
def test_arguments_and_shardings_are_for_functions_alone(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    with pytest.raises(
        UsageError,
        match="loading a module: got arguments or shardings for a PosixPath, needed arguments and shardings only for a function",
    ):
        pyshardy.load(MLP, *args, **options)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("missing.mlir", UsageError, "reading missing.mlir: got no such file"),
        (Path("missing.mlir"), UsageError, "reading missing.mlir: got no such file"),
        ("module {", InvalidModuleError, r"reading a module: got .*\n  at the text:1:"),
        ("\n  oops", InvalidModuleError, r"custom op 'oops' is unknown .*\n  at the text:2:3"),
        (b"oops", InvalidModuleError, r"custom op 'oops' is unknown .*\n  at -:1:1"),
        (b"\xff", InvalidModuleError, "neither UTF-8 text nor MLIR bytecode"),
    ],
)
def test_sources_that_cannot_be_read_are_refused(source: Any, error: type[ShardyError], message: str) -> None:
    with pytest.raises(error, match=message):
        pyshardy.load(source)


# Propagating

CONFLICT = f"""{MESH}func.func @main(%a: tensor<8x8xf32> {on('[{"x"}p1, {}]')}, %b: tensor<8x8xf32> {on('[{"y"}, {}]')},
    %c: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
  %0 = stablehlo.add %a, %c : tensor<8x8xf32>
  %1 = stablehlo.add %c, %b : tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}}"""


def test_a_module_is_not_changed_by_propagation() -> None:
    module = pyshardy.load(MLP)
    before = module.text()
    result = pyshardy.propagate(module)
    assert module.text() == before
    assert result.before is module
    assert result.module.text() != before


def test_every_port_and_op_has_its_sharding() -> None:
    result = pyshardy.propagate(pyshardy.load(MLP))
    assert [str(port.sharding) for port in result.inputs] == [
        '<@mesh, [{"data"}, {}]>', '<@mesh, [{}, {"model"}]>', '<@mesh, [{"model"}, {}]>',
    ]  # fmt: skip
    assert [str(port.sharding) for port in result.outputs] == ['<@mesh, [{"data"}, {}]>']
    assert result.module.text().count("sdy.sharding_per_value") == 3
    assert {name: str(mesh) for name, mesh in result.meshes.items()} == {"mesh": '<["data"=4, "model"=2]>'}
    assert result.diagnostics == ()
    result.module.verify()


def test_propagation_is_deterministic_and_done_once() -> None:
    module = pyshardy.load(CONFLICT)
    first, second = (pyshardy.propagate(module) for _ in range(2))
    assert first.module.text() == second.module.text()
    assert pyshardy.propagate(first.module).module.text() == first.module.text()


def test_options_decide() -> None:
    def sharding_of_c(**options: Any) -> tuple[str, pyshardy.Propagation]:
        result = pyshardy.propagate(pyshardy.load(CONFLICT), pyshardy.PropagateOptions(**options))
        return str(result.inputs[2].sharding), result

    assert sharding_of_c()[0] == '<@mesh, [{"y"}, {}]>'  # %b goes first, since %a has priority 1
    ignoring, result = sharding_of_c(user_priorities=False, strategy=StrategyOption.BASIC)
    assert ignoring == '<@mesh, [{"x"}, {}]>'
    assert result.options == pyshardy.PropagateOptions(user_priorities=False, strategy=StrategyOption.BASIC)


def test_steps_are_recorded_on_request() -> None:
    module = pyshardy.load(MLP)
    assert pyshardy.propagate(module).steps == ()
    traced = pyshardy.propagate(module, pyshardy.PropagateOptions(trace=True))
    assert len(traced.steps) >= 4  # `data` over three ops to the result, `model` over two to w2
    assert {str(axis) for step in traced.steps for axis in step.axes} == {'"data"', '"model"'}
    assert traced.module.text() == pyshardy.propagate(module).module.text()


def test_stages_are_timed_in_order() -> None:
    stages = pyshardy.propagate(pyshardy.load(MLP)).stages
    assert [name for name, _ in stages] == ["read", "import", "propagate", "export", "write"]
    assert all(seconds >= 0 for _, seconds in stages)


def test_a_module_that_breaks_what_propagation_needs_is_refused() -> None:
    text = "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n %0 = stablehlo.sine %a : tensor<?xf32>\n return %0 : tensor<?xf32> }"
    with pytest.raises(PassError, match=r"'stablehlo.sine' op has a result of type tensor<\?xf32>.*\n  at -:2:7"):
        pyshardy.propagate(pyshardy.load(text))


# Shardings for JAX


def test_shardings_of_a_function_are_trees_fit_for_jit() -> None:
    result = pyshardy.propagate(pyshardy.load(jitted().lower(*arguments())))
    rows, columns = (NamedSharding(jax_mesh(), spec) for spec in (P("data", None), P(None, "model")))
    assert result.in_shardings == ({"w1": columns, "w2": NamedSharding(jax_mesh(), P("model", None))}, rows)
    assert result.out_shardings == {"y": rows}

    random = np.random.default_rng(0)
    args = jax.tree.map(lambda leaf: random.normal(0, 0.1, leaf.shape).astype(np.float32), arguments())
    sharded = jax.jit(predict, in_shardings=result.in_shardings, out_shardings=result.out_shardings)
    found = sharded(*args)["y"]
    assert found.sharding == rows
    np.testing.assert_allclose(found, predict(*args)["y"], rtol=1e-4, atol=1e-5)


def test_shardings_of_a_module_are_tuples_in_its_order() -> None:
    result = pyshardy.propagate(pyshardy.load(MLP))
    assert [sharding.spec for sharding in result.in_shardings] == [P("data", None), P(None, "model"), P("model", None)]
    assert isinstance(result.in_shardings, tuple)
    assert result.out_shardings == (NamedSharding(jax_mesh(), P("data", None)),)


def test_an_argument_that_is_not_used_has_none() -> None:
    def second(unused: Any, x: Any, also: Any) -> Any:
        return [x + 1, x.sum()]

    rows = NamedSharding(jax_mesh(), P("data"))
    x = jax.ShapeDtypeStruct((8, 4), "float32")
    result = pyshardy.propagate(pyshardy.load(second, {"a": x, "b": x}, x, x, in_shardings=(None, rows, rows)))
    filled = NamedSharding(jax_mesh(), P("data", None))
    assert result.in_shardings == ({"a": None, "b": None}, filled, None)
    assert result.out_shardings == [filled, NamedSharding(jax_mesh(), P())]
    array = np.ones((8, 4), np.float32)
    sharded = jax.jit(second, in_shardings=result.in_shardings, out_shardings=result.out_shardings)
    assert float(sharded({"a": array, "b": array}, array, array)[1]) == 32
    assert [float(output.sum()) for output in result.run(array)] == [64, 32]  # an input is what the module takes


def test_without_a_mesh_there_are_no_shardings() -> None:
    x = jax.ShapeDtypeStruct((8, 4), "float32")
    result = pyshardy.propagate(pyshardy.load(lambda x: [jnp.sin(x)], x))
    assert (result.in_shardings, result.out_shardings, result.meshes) == ((None,), [None], {})


def test_a_sub_axis_has_no_sharding_in_jax() -> None:
    type = "tensor<8xf32>"
    text = f"""{MESH}func.func @main(%a: {type} {on('[{"x":(1)2}]')}) -> {type} {{ return %a : {type} }}"""
    result = pyshardy.propagate(pyshardy.load(text))
    message = r'converting the sharding of arg0: got the sub-axis "x":\(1\)2, needed whole axes'
    with pytest.raises(InvalidShardingError, match=message):
        _ = result.in_shardings
    assert result.inputs[0].sharding is not None


def test_a_mesh_larger_than_jax_has_no_shardings_but_tables() -> None:
    result = pyshardy.propagate(pyshardy.load(MLP.read_text().replace('"data"=4', '"data"=16')))
    for attribute in ("in_shardings", "out_shardings"):
        with pytest.raises(UsageError, match="got 8 devices, needed 32"):
            getattr(result, attribute)
    assert "f32[2, 64]" in str(result)


# Looking at the result and running it


def test_the_summary_is_computed_from_the_shardings() -> None:
    summary = pyshardy.propagate(pyshardy.load(MLP)).summary
    assert summary.title == "function @main"
    assert summary.meshes == (("mesh", OurMesh([("data", 4), ("model", 2)])),)
    rows, columns, inner = (
        parse_sharding(f"<@mesh, {dims}>") for dims in ('[{"data"}, {}]', '[{}, {"model"}]', '[{"model"}, {}]')
    )
    assert summary.inputs == (
        TensorRow("x", (32, 64), "f32", rows, (8, 64), 8192, 2048, 2048, False),
        TensorRow("params['w1']", (64, 256), "f32", columns, (64, 128), 65536, 32768, 32768, False),
        TensorRow("params['w2']", (256, 64), "f32", inner, (128, 64), 65536, 32768, 65536, True),
    )
    assert summary.outputs == (TensorRow("result", (32, 64), "f32", rows, (8, 64), 8192, 2048, 8192, True),)
    assert (summary.tensors_sharded, summary.tensors_replicated, summary.warnings) == (3, 0, ())


@pytest.mark.parametrize(
    ("type", "sharding", "described", "local", "bytes"),
    [
        ("tensor<8x4xbf16>", '[{"x", "y"}, {}]', '[{"x", "y"}, {}]', (1, 4), (64, 8)),
        ("tensor<8x4xi1>", '[{"x"}, {}]', '[{"x"}, {}]', (2, 4), (32, 8)),
        ("tensor<5x2xi4>", '[{}, {"y"}]', '[{}, {"y"}]', (5, 1), (5, 3)),
        ("tensor<8x2xf64>", '[{"x":(2)2}, {}]', '[{"x":(2)2}, {}]', (4, 2), (128, 64)),
        ("tensor<4xcomplex<f32>>", '[{}], replicated={"x"}', "replicated", (4,), (32, 32)),
        ("tensor<4xf32>", '[{}], unreduced={"x"}', '[{}] unreduced "x"', (4,), (16, 16)),
        ("tensor<f32>", "[]", "replicated", (), (4, 4)),
        ("tensor<0x4xf32>", '[{}, {"y"}]', '[{}, {"y"}]', (0, 2), (0, 0)),
    ],
)
def test_rows_of_single_tensors(
    type: str, sharding: str, described: str, local: tuple[int, ...], bytes: tuple[int, int]
) -> None:
    text = f"{MESH}func.func @main(%a: {type} {on(sharding)}) -> ({type} {on(sharding)}) {{ return %a : {type} }}"
    summary = pyshardy.propagate(pyshardy.load(text)).summary
    for row in (*summary.inputs, *summary.outputs):
        assert (format_sharding(row.sharding, Notation.SDY), row.local_shape) == (described, local)
        assert (row.bytes_total, row.bytes_per_device, row.bytes_per_device_before) == (*bytes, bytes[1])
        assert not row.is_inferred
    assert (summary.tensors_sharded, summary.tensors_replicated) == (0, 0)


def test_a_sharding_that_does_not_divide_is_not_kept_and_that_is_said() -> None:
    type = "tensor<7x4xf32>"
    sharding = on('[{"x"}, {"y"}]')
    text = f"""{MESH}func.func @main(%a: {type} {sharding}, %b: {type} {on('[{}, {"y"}]')}) -> ({type} {sharding}) {{
      return %a : {type}
    }}"""
    summary = pyshardy.propagate(pyshardy.load(text)).summary
    for row in (summary.inputs[0], summary.outputs[0]):
        assert (format_sharding(row.sharding), row.local_shape, row.is_inferred) == ("P(None, 'y')", (7, 2), False)
        assert (row.bytes_total, row.bytes_per_device_before, row.bytes_per_device) == (112, 16, 56)  # before: padded
    assert summary.warnings == (
        "input arg0 is split less than annotated: P(None, 'y') divides f32[7, 4] evenly",
        "output result is split less than annotated: P(None, 'y') divides f32[7, 4] evenly",
    )


def test_computed_tensors_are_counted_in_all_functions() -> None:
    type = "tensor<8xf32>"
    text = f"""{MESH}func.func @main(%a: {type} {on('[{"x"}]')}, %b: {type}) -> ({type}, {type}, !stablehlo.token) {{
      %t = stablehlo.create_token : !stablehlo.token
      %0 = stablehlo.negate %a : {type}
      %1 = stablehlo.negate %b : {type}
      %2 = call @f(%0) : ({type}) -> {type}
      return %2, %1, %t : {type}, {type}, !stablehlo.token
    }}
    func.func private @f(%a: {type}) -> {type} {{ %0 = stablehlo.negate %a : {type}\nreturn %0 : {type} }}"""
    summary = pyshardy.propagate(pyshardy.load(text), view="stablehlo").summary
    assert (summary.tensors_sharded, summary.tensors_replicated) == (3, 1)  # %0, the call, and @f's; %1; no token


def test_the_text_is_the_tables() -> None:
    result = pyshardy.propagate(pyshardy.load(MLP))
    assert repr(result) == "<Propagation of function @main: 3 inputs, 1 output, 8 devices>"
    lines = str(result).splitlines()
    assert lines[0] == "function @main on 8 devices: data=4, model=2"
    row = tables_in(str(result))["inputs"][2]
    assert (row["name"], row["tensor"], row["sharding"]) == ("params['w2']", "f32[256, 64]", "P('model')")
    assert (row["given by"], row["on one device"], row["bytes per device"]) == (
        "params['w1']",
        "f32[128, 64]",
        "32.0 KiB",
    )


def test_notebooks_show_the_same_tables() -> None:
    result = pyshardy.propagate(pyshardy.load(MLP))
    (found,) = re.findall(r"<pre style=\"[^\"]*\">.*?</pre>", result._repr_html_(), re.DOTALL)
    plain = re.sub(r"<[^>]+>", "", found)
    for before, after in (("&lt;", "<"), ("&gt;", ">"), ("&#x27;", "'"), ("&quot;", '"'), ("&amp;", "&")):
        plain = plain.replace(before, after)
    assert [line.rstrip() for line in plain.splitlines()] == str(result).splitlines()


def test_the_title_is_the_name_of_the_module_or_else_of_the_function() -> None:
    function = "func.func @step() { return }"
    assert str(pyshardy.propagate(pyshardy.load(function))).startswith("function @step: ")
    assert str(pyshardy.propagate(pyshardy.load(f"module @net {{ {function} }}"))).startswith("module @net: ")


def test_running_gives_the_outputs_under_their_shardings() -> None:
    result = pyshardy.propagate(pyshardy.load(MLP))
    x, w1, w2 = (np.full(port.shape, 0.01, np.float32) for port in result.inputs)
    outputs = result.run(x, w1, w2)
    assert isinstance(outputs, tuple)
    (found,) = outputs
    np.testing.assert_allclose(found, np.tanh(x @ w1) @ w2, rtol=1e-5)
    assert found.sharding == result.out_shardings[0]


def test_running_on_given_devices() -> None:
    result = pyshardy.propagate(pyshardy.load(MLP.read_text().replace('"data"=4', '"data"=1')))
    arrays = [np.ones(port.shape, np.float32) for port in result.inputs]
    (found,) = result.run(*arrays, devices=jax.devices()[3:5])
    assert found.devices() == set(jax.devices()[3:5])


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([], "running a module: got 0 arrays, needed 3, one per input"),
        (
            [(32, 64), (64, 256), (64, 256)],
            r"reading the input params\['w2'\]: got float32\[64, 256\], needed float32\[2",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_refused(shapes: list[tuple[int, ...]], message: str) -> None:
    result = pyshardy.propagate(pyshardy.load(MLP))
    with pytest.raises(UsageError, match=message):
        result.run(*(np.ones(shape, np.float32) for shape in shapes))


# Ops of unknown dialects

UNKNOWN = """sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> tensor<4x8xf32> {
  %0 = "my.swap"(%a) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""


@pytest.mark.parametrize("form", ["text", "bytes", "path", "module"])
def test_ops_of_unknown_dialects_are_accepted_on_demand(form: str, tmp_path: Path) -> None:
    source: Any = UNKNOWN
    if form == "bytes":
        source = UNKNOWN.encode()
    elif form == "path":
        source = tmp_path / "unknown.mlir"
        source.write_text(UNKNOWN)
    elif form == "module":
        source = pyshardy.load(UNKNOWN, allow_unregistered_dialects=True).mlir
    register_rule("my.swap", "i j -> j i")
    try:
        result = pyshardy.propagate(pyshardy.load(source, allow_unregistered_dialects=form != "module"))
    finally:
        unregister_rule("my.swap")
    assert str(result.outputs[0].sharding) == '<@m, [{}, {"x"}]>'


def test_ops_of_unknown_dialects_are_refused_otherwise() -> None:
    with pytest.raises(InvalidModuleError, match=r"needed ops that jaxlib knows, or allow_unregistered_dialects=True"):
        pyshardy.load(UNKNOWN)
