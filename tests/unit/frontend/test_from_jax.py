"""Modules from JAX functions, and shardings that JAX takes back."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from programs import PROGRAMS
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidShardingError, UnsupportedVersionError, UsageError
from pyshardy.frontend import from_jax
from pyshardy.frontend.from_jax import NamedShardings, jax_mesh, load_function, load_lowered, partition_spec
from pyshardy.frontend.interface import InterfaceTensor

ROWS = np.arange(32, dtype=np.float32).reshape(8, 4)


def grid(devices=None) -> jax.sharding.Mesh:
    return jax.sharding.Mesh(np.array(jax.devices() if devices is None else devices).reshape(-1, 2), ("x", "y"))


def on(*spec, mesh=None) -> NamedSharding:
    return NamedSharding(mesh or grid(), P(*spec))


def propagated(function, *args, **shardings) -> pyshardy.Propagation:
    return pyshardy.propagate(load_function(function, args, **shardings))


def same(found, expected) -> None:
    """Compare trees of shardings by what they do to arrays."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        assert one.mesh.devices.tolist() == other.mesh.devices.tolist()
        assert one.is_equivalent_to(other, max(len(one.spec), len(other.spec)))


def rerun(function, result: pyshardy.Propagation, *args, **options) -> None:
    """Jit the function anew with the shardings found, run it, and look where the results are."""
    jitted = jax.jit(function, in_shardings=result.in_shardings, out_shardings=result.out_shardings, **options)
    found = jitted(*args)
    same(jax.tree.map(lambda array: array.sharding, found), result.out_shardings)
    expected = jax.tree.map(data_of, jax.jit(function, **options)(*args))
    for one, other in zip(jax.tree.leaves(jax.tree.map(data_of, found)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def data_of(array: jax.Array) -> np.ndarray:
    is_key = jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(array) if is_key else array)


# Loading


def test_the_signature_of_a_lowered_function() -> None:
    lowered = jax.jit(lambda p, unused, k: {"new": p["w"], "k": k}).lower({"w": ROWS}, ROWS, jax.random.key(0))
    origin = load_lowered(lowered).origin
    assert origin.in_tree == lowered.in_tree
    assert origin.out_tree == lowered.out_tree
    assert (origin.in_ranks, origin.kept, origin.out_ranks) == ((2, 2, 0), (0, 2), (0, 2))
    assert len(origin.devices) == 1


def test_functions_jitted_or_not() -> None:
    def double(x):
        return x + x

    plain, jitted = load_function(double, [ROWS]), load_function(jax.jit(double), [ROWS])
    abstract = load_function(double, [jax.ShapeDtypeStruct((8, 4), np.float32)])
    assert plain.text() == jitted.text() == abstract.text()
    assert "stablehlo.add" in plain.text()


def test_shardings_of_a_plain_function() -> None:
    module = load_function(lambda x: x.T, [ROWS], in_shardings=on("x"), out_shardings=on("y", None))
    assert 'sdy.sharding<@mesh, [{"x"}, {}]>' in module.text()
    assert 'sdy.sharding<@mesh, [{"y"}, {}]>' in module.text()


@pytest.mark.parametrize("given", [{"in_shardings": on("x")}, {"out_shardings": on("x")}])
def test_a_jitted_function_has_its_shardings(given) -> None:
    with pytest.raises(
        UsageError, match=rf"loading a jitted function: got {next(iter(given))}, needed the shardings in jax"
    ):
        load_function(jax.jit(lambda x: x), [ROWS], **given)


def test_a_compiled_function() -> None:
    with pytest.raises(UsageError, match="loading a function: got a compiled one"):
        load_function(jax.jit(lambda x: x).lower(ROWS).compile(), [ROWS])


def test_a_function_that_does_not_take_the_arguments() -> None:
    with pytest.raises(TypeError):
        load_function(lambda x: x, [])


# Shardings back


def test_the_shardings_are_fit_for_jit() -> None:
    def loss(params, x):
        return {"out": jnp.tanh(x @ params["w"]), "sum": (x.sum(), params["b"] * 2)}

    params = {"w": np.ones((4, 6), np.float32), "b": np.ones(6, np.float32)}
    result = propagated(loss, params, ROWS, in_shardings=({"w": on(None, "y"), "b": None}, on("x")))
    same(result.in_shardings, ({"w": on(None, "y"), "b": on()}, on("x", None)))
    same(result.out_shardings, {"out": on("x", "y"), "sum": (on(), on())})
    rerun(loss, result, params, ROWS)


def test_arguments_that_are_not_used_have_none() -> None:
    def first(x, unused, y):
        return x + y["a"]

    args = (ROWS, {"big": ROWS, "small": ROWS}, {"a": ROWS, "b": ROWS})
    result = propagated(first, *args, in_shardings=(on("x"), None, None))
    assert result.in_shardings[1] == {"big": None, "small": None}
    assert result.in_shardings[2]["b"] is None
    same(result.in_shardings[2]["a"], on("x"))
    rerun(first, result, *args)


def test_all_arguments_may_be_unused_and_there_may_be_no_results() -> None:
    result = propagated(lambda x: (), ROWS)
    assert (result.in_shardings, result.out_shardings) == ((None,), ())
    rerun(lambda x: (), result, ROWS)


def test_none_in_arguments_and_results() -> None:
    def some(tree, nothing):
        return None, tree["a"], nothing

    result = propagated(some, {"a": ROWS, "b": None}, None, in_shardings=({"a": on("x"), "b": None}, None))
    same(result.in_shardings, ({"a": on("x"), "b": None}, None))
    same(result.out_shardings, (None, on("x"), None))


def test_keyword_arguments_are_left_to_jit() -> None:
    def scaled(x, *, scale):
        return x * scale

    lowered = jax.jit(scaled).lower(jax.ShapeDtypeStruct((8, 4), np.float32, sharding=on("x")), scale=ROWS)
    result = pyshardy.propagate(load_lowered(lowered))
    same(result.in_shardings, (on("x"),))
    same(result.out_shardings, on("x"))


def test_static_arguments() -> None:
    def power(x, count):
        return x**count

    result = pyshardy.propagate(load_lowered(jax.jit(power, static_argnums=1, in_shardings=(on("x"),)).lower(ROWS, 3)))
    same(result.in_shardings, (on("x"),))
    rerun(power, result, ROWS, 3, static_argnums=1)


@pytest.mark.slow
def test_keys_have_the_dimensions_that_jax_sees() -> None:
    def draw(key, keys, x):
        return jax.random.uniform(key, (8,)) + x, jax.vmap(lambda one: jax.random.bits(one, ()))(keys), keys

    keys = jax.random.split(jax.random.key(1), 8)
    args = (jax.random.key(0), keys, np.ones(8, np.float32))
    result = propagated(draw, *args, in_shardings=(None, on("x"), on("y")))
    same(result.in_shardings, (on(), on("x"), on("y")))
    same(result.out_shardings, (on("y"), on("x"), on("x")))
    assert [len(sharding.spec) for sharding in result.in_shardings] == [0, 1, 1]
    rerun(draw, result, *args)


def test_a_sharded_dimension_that_jax_does_not_see() -> None:
    with pytest.raises(InvalidShardingError, match="converting the sharding: got .*needed at most 1 sharded dims"):
        partition_spec(parse_sharding('<@mesh, [{}, {"x"}]>'), 1)


def test_devices_are_those_of_the_function_in_its_order() -> None:
    devices = jax.devices()
    some = grid([devices[index] for index in (5, 2, 7, 0)])

    def square(x):
        return jax.lax.with_sharding_constraint(x @ x.T, on("y", "x", mesh=some))

    result = propagated(square, ROWS, in_shardings=on("x", mesh=some))
    same(result.in_shardings, (on("x", mesh=some),))
    same(result.out_shardings, on("y", "x", mesh=some))
    rerun(square, result, ROWS)


@pytest.mark.slow_but_for("device_order")
@pytest.mark.parametrize(
    "name", ["mlp_training", "dropout_threefry", "device_order", "several_meshes", "explicit_types"]
)
def test_programs_run_with_the_shardings_found(name: str) -> None:
    program = PROGRAMS[name]
    result = pyshardy.propagate(pyshardy.load(program.lower()))
    built = program.build(program.mesh())
    jitted = jax.jit(built.fn, in_shardings=result.in_shardings, out_shardings=result.out_shardings)
    found = jitted(*program.concrete_args())
    same(jax.tree.map(lambda array: array.sharding, found), result.out_shardings)


def test_without_a_mesh_nothing_is_said() -> None:
    result = propagated(lambda x: x, ROWS)
    assert (result.in_shardings, result.out_shardings) == ((None,), None)


def test_a_function_lowered_for_no_devices() -> None:
    mesh = AbstractMesh((4, 2), ("x", "y"))
    traced = jax.jit(lambda x: x, in_shardings=NamedSharding(mesh, P("x"))).trace(ROWS)
    module = load_lowered(traced.lower(lowering_platforms=("cpu",)))
    assert module.origin.devices is None
    same(pyshardy.propagate(module).in_shardings, (on("x"),))


def test_a_jax_that_does_not_tell_what_it_dropped() -> None:
    lowered = jax.jit(lambda x, unused: x).lower(ROWS, ROWS)
    blind = SimpleNamespace(
        compiler_ir=lowered.compiler_ir,
        args_info=lowered.args_info,
        out_info=lowered.out_info,
        in_tree=lowered.in_tree,
        out_tree=lowered.out_tree,
        _lowering=SimpleNamespace(),
    )
    result = pyshardy.propagate(load_lowered(blind))
    with pytest.raises(UnsupportedVersionError, match=r"got 1 inputs for 2 arguments, .*\n  try: .*keep_unused=True"):
        _ = result.in_shardings


# The pieces


@pytest.mark.parametrize(
    ("sharding", "rank", "spec"),
    [
        (None, 2, P()),
        ("[{}, {?}]", 2, P(None, None)),
        ('[{"x"}, {"y", "z", ?}]', 2, P("x", ("y", "z"))),
        ('[{"x", ?}p1, {}]', 2, P("x", None)),
        ('[{"x"}, {}]', 1, P("x")),
        ("[]", 0, P()),
        ('[{"x"}, {}], replicated={"y"}', 2, P("x", None)),
        ('[{"x"}, {}], unreduced={"y", "z"}', 2, P("x", None, unreduced={"y", "z"})),
    ],
)
def test_partition_specs(sharding: str | None, rank: int, spec: P) -> None:
    assert partition_spec(None if sharding is None else parse_sharding(f"<@mesh, {sharding}>"), rank) == spec


def test_a_sub_axis_has_no_partition_spec() -> None:
    with pytest.raises(
        InvalidShardingError, match=r'got the sub-axis "x":\(1\)2, needed whole axes, as PartitionSpec has'
    ):
        partition_spec(parse_sharding('<@mesh, [{"x":(1)2}]>'), 1)


def test_a_sub_axis_names_its_input_or_output() -> None:
    text = """sdy.mesh @mesh = <["x"=8]>
    func.func @main(%a: tensor<8xf32> loc("weights")) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>}) {
      return %a : tensor<8xf32>
    }"""
    converter = NamedShardings({"mesh": Mesh([("x", 8)])})
    tensor = InterfaceTensor("weights", 0, (8,), "f32", parse_sharding('<@mesh, [{"x":(1)2}]>'))
    with pytest.raises(InvalidShardingError, match=r"converting the sharding of weights: got the sub-axis"):
        converter.of(tensor)
    assert pyshardy.propagate(pyshardy.load(text)).outputs


@pytest.mark.parametrize(
    ("mesh", "expected"),
    [
        (Mesh([("x", 2), ("y", 4)]), [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (Mesh([("x", 2), ("y", 2)]), [[0, 1], [2, 3]]),
        (Mesh([("x", 2), ("y", 2)], [3, 1, 2, 0]), [[3, 1], [2, 0]]),
    ],
)
def test_meshes_over_devices(mesh: Mesh, expected: list[list[int]]) -> None:
    found = jax_mesh(mesh)
    assert found.axis_names == ("x", "y")
    assert [[device.id for device in row] for row in found.devices] == expected
    backwards = jax_mesh(mesh, jax.devices()[::-1])
    assert [[7 - device.id for device in row] for row in backwards.devices] == expected


def test_too_few_devices() -> None:
    message = r"laying the mesh <\[\"x\"=16\]> over devices: got 8 devices, needed 16\n  try: .*device_count=16 before"
    with pytest.raises(UsageError, match=message):
        jax_mesh(Mesh([("x", 16)]))
    with pytest.raises(UsageError, match="got 1 devices, needed 2"):
        jax_mesh(Mesh([("x", 2)]), jax.devices()[:1])


def test_one_jax_mesh_per_mesh() -> None:
    meshes = {"a": Mesh([("x", 2)]), "b": Mesh([("y", 8)]), "one": Mesh([], [0])}
    converter = NamedShardings(meshes)

    def of(text: str | None) -> NamedSharding:
        return converter.of(InterfaceTensor("p", 0, (8,), "f32", None if text is None else parse_sharding(text)))

    assert of('<@b, [{"y"}]>').spec == P("y")
    assert of('<@b, [{"y"}]>').mesh is of("<@b, [{}]>").mesh
    assert of(None) == NamedSharding(of("<@a, [{}]>").mesh, P())  # the first mesh with axes
    assert of("<@one, []>").spec == P()
    assert NamedShardings({"one": meshes["one"]}).of(InterfaceTensor("p", 0, (8,), "f32", None)) is None


def test_the_module_keeps_its_signature_through_passes() -> None:
    module = load_function(lambda x: x, [ROWS])
    assert pyshardy.run_pipeline(module, "sdy-propagation-pipeline").origin is module.origin
    assert isinstance(module.origin, from_jax.JaxSignature)
