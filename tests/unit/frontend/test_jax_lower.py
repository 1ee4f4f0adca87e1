"""Functions lowered for any devices, of any platform, and whatever a function may be."""

from __future__ import annotations

import importlib
import re
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from programs import PROGRAMS
from programs.base import Program
from pyshardy.core.mesh import Mesh
from pyshardy.errors import InvalidShardingError, ShardyError, UsageError
from pyshardy.frontend.jax_leaves import is_static
from pyshardy.frontend.jax_private import (
    StandInDevice,
    ad,
    batching,
    hlo_sharding,
    inspection_number,
    inspections,
    key_name,
    mlir,
    stand_in_mesh,
)
from pyshardy.frontend.jax_shardings import abstract_mesh
from pyshardy.ir.nodes import walk

CLUSTER = {"data": 32, "model": 16}
MESH = AbstractMesh((32, 16), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
X, W = jax.ShapeDtypeStruct((64, 32), np.float32), jax.ShapeDtypeStruct((32, 64), np.float32)
SPECS = (P("data"), P(None, "model"))
IN_PROCESS = {"callbacks"}
WITH_DEVICES = {"several_meshes", "explicit_types"}
"""Programs that look at the devices of their mesh when they are built."""


def layer(x, w):
    return jnp.tanh(x @ w)


def sharded(module: pyshardy.Module) -> list[str]:
    return [str(tensor.sharding) for tensor in pyshardy.propagate(module).inputs]


BOTH = ['<@mesh, [{"data"}, {}]>', '<@mesh, [{}, {"model"}]>']


# Without the devices


@pytest.mark.parametrize(
    "mesh",
    [CLUSTER, "data=32,model=16", MESH, Mesh([("data", 32), ("model", 16)])],
    ids=["dict", "text", "jax", "ours"],
)
def test_one_line_for_a_cluster(mesh) -> None:
    module = pyshardy.load(layer, X, W, mesh=mesh, in_shardings=SPECS, platform="tpu")
    result = pyshardy.propagate(module)
    assert [str(tensor.sharding) for tensor in result.inputs] == BOTH
    assert result.in_specs == (P("data", None), P(None, "model"))
    assert result.out_specs == P("data", "model")
    assert result.in_shardings == tuple(NamedSharding(MESH, P(*spec)) for spec in (("data", None), (None, "model")))
    assert result.out_shardings == NamedSharding(MESH, P("data", "model"))
    assert "mhlo.num_partitions = 512" in module.text()
    assert pyshardy.partition(module).device_count == 512


@pytest.mark.parametrize("devices", [1, 3, 512, 70_000])
def test_any_number_of_devices(devices: int) -> None:
    x = jax.ShapeDtypeStruct((2 * devices,), np.float32)
    module = pyshardy.load(lambda x: x + 1, x, mesh={"d": devices}, in_shardings=P("d"))
    assert f"mhlo.num_partitions = {devices} : i32" in module.text()


def stripped(module: pyshardy.Module) -> str:
    return re.sub(r'backend_config = "\d+"', "", module.text())


@pytest.mark.slow_but_for("reshapes")
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "program",
    [program for name, program in PROGRAMS.items() if name not in IN_PROCESS | WITH_DEVICES],
    ids=lambda program: program.name,
)
def test_the_module_is_that_of_real_devices(program: Program) -> None:
    reason = program.skip()
    if reason:
        pytest.skip(reason)
    real = program.mesh()
    abstract = AbstractMesh(real.axis_sizes, real.axis_names, axis_types=real.axis_types)
    built = program.build(abstract)
    shardings = {"in_shardings": built.in_shardings, "out_shardings": built.out_shardings}
    found = pyshardy.load(built.fn, *built.abstract_args, mesh=abstract, donate_argnums=program.donate, **shardings)
    with jax.set_mesh(real):
        expected = pyshardy.load(program.lower())
    assert stripped(found) == stripped(expected)


def test_the_comparison_notices_another_module() -> None:
    assert stripped(pyshardy.load(layer, X, W)) != stripped(pyshardy.load(lambda x, w: x @ w, X, W))


def test_constraints_in_the_function() -> None:
    def constrained(x, w):
        x = jax.lax.with_sharding_constraint(x, P("data"))
        return x @ jax.lax.with_sharding_constraint(w, NamedSharding(MESH, P(None, "model")))

    assert sharded(pyshardy.load(constrained, X, W, mesh=CLUSTER)) == BOTH
    assert sharded(pyshardy.load(jax.jit(constrained), X, W, mesh=MESH)) == BOTH


def test_the_mesh_that_a_function_closes_over() -> None:
    constrain = partial(jax.lax.with_sharding_constraint, shardings=NamedSharding(MESH, P("data")))
    module = pyshardy.load(lambda x: constrain(x * 2), X)
    assert sharded(module) == BOTH[:1]
    assert sharded(pyshardy.load(lambda x: x * 2, X, in_shardings=NamedSharding(MESH, P("data")))) == BOTH[:1]
    argument = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(MESH, P("data")))
    assert sharded(pyshardy.load(lambda x: x * 2, argument)) == BOTH[:1]
    with jax.sharding.use_abstract_mesh(MESH):
        assert sharded(pyshardy.load(lambda x: x * 2, X, in_shardings=P("data"))) == BOTH[:1]


def test_jitted_functions_with_specs() -> None:
    jitted = jax.jit(layer, in_shardings=SPECS, donate_argnums=0)
    assert sharded(pyshardy.load(jitted, X, W, mesh=CLUSTER)) == BOTH


def test_explicit_axes() -> None:
    mesh = MESH.update(axis_types=(AxisType.Explicit,) * 2)

    def resharded(x, w):
        return jax.sharding.reshard(x @ w, P(None, "model"))

    args = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(mesh, s)) for a, s in zip((X, W), SPECS)]
    assert sharded(pyshardy.load(resharded, *args)) == BOTH
    assert sharded(pyshardy.load(resharded, X, W, mesh=mesh, in_shardings=SPECS)) == BOTH


def test_in_shardings_are_types_along_explicit_axes() -> None:
    mesh = MESH.update(axis_types=(AxisType.Explicit,) * 2)
    seen = []

    def step(x, w):
        seen.append(jax.typeof(x).sharding.spec)
        return x - 0.1 * jax.grad(lambda x: jnp.sum(jnp.tanh(x @ w)))(x)

    module = pyshardy.load(step, X, W, mesh=mesh, in_shardings=SPECS)
    args = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(mesh, s)) for a, s in zip((X, W), SPECS)]
    typed = pyshardy.load(step, *args)
    assert {tuple(spec) for spec in seen} == {("data", None)}
    kinds = [[row.kind for row in pyshardy.partition(one).traffic.collectives] for one in (module, typed)]
    assert kinds[0] == kinds[1]
    assert pyshardy.propagate(module).out_specs == P("data", None)
    pyshardy.load(lambda pair: pair["x"] @ pair["w"], {"x": X, "w": W}, mesh=mesh, in_shardings=P())  # one for all


def test_manual_computations() -> None:
    for mesh in (MESH, None):
        mapped = jax.shard_map(lambda x: jax.lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
        assert sharded(pyshardy.load(mapped, X, mesh=CLUSTER)) == BOTH[:1]


def callback(x):
    jax.debug.print("sum {}", x.sum())
    return jax.pure_callback(lambda a: a, x, x)


@pytest.mark.parametrize("platform", ["cpu", "tpu", "cuda"])
def test_callbacks_need_no_devices(platform: str) -> None:
    module = pyshardy.load(callback, X, mesh=CLUSTER, in_shardings=P("data"), platform=platform)
    assert 'sdy.sharding<@mesh, [{"data"}, {}]>' in module.text()


def test_partitioners_need_no_devices() -> None:
    @custom_partitioning
    def product(x, y):
        return x @ y

    product.def_partition(
        partition=lambda mesh, args, result: (mesh, jnp.matmul, result.sharding, tuple(arg.sharding for arg in args)),
        sharding_rule="i j, j k -> i k",
    )
    module = pyshardy.load(product, X, W, mesh=CLUSTER, in_shardings=SPECS)
    result = pyshardy.propagate(module)
    assert result.out_specs == P("data", "model")
    assert "CustomSPMDPartitioning" not in pyshardy.partition(module).module.text()


def test_arrays_of_this_machine() -> None:
    x = jnp.ones((64, 32))
    committed = jax.device_put(x, jax.devices()[1])
    for array in (x, committed, np.ones((64, 32), np.float32)):
        assert sharded(pyshardy.load(lambda x: x + 1, array, mesh=CLUSTER, in_shardings=P("data"))) == BOTH[:1]
        assert sharded(pyshardy.load(jax.jit(lambda x: x + 1, in_shardings=P("data")), array, mesh=CLUSTER)) == BOTH[:1]
        module = pyshardy.load(lambda x: array + x, X, mesh=CLUSTER)  # noqa: B023 (called at once)
        assert module.origin.mesh == MESH


def test_an_array_keeps_its_spec_on_a_mesh_of_these_axes() -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    x = jax.device_put(jnp.ones((64, 32)), NamedSharding(mesh, P("data")))
    assert sharded(pyshardy.load(lambda x: x + 1, x, mesh={"data": 4, "model": 2})) == BOTH[:1]
    assert sharded(pyshardy.load(lambda x: x + 1, x, mesh=mesh)) == BOTH[:1]


def test_shardings_on_devices_of_this_machine() -> None:
    here = NamedSharding(jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2), P("data"))
    with pytest.raises(
        UsageError,
        match="lowering a function for 512 devices, data=32,model=16: got arrays or shardings on devices of this machine, in the f",
    ):
        pyshardy.load(lambda x: jax.lax.with_sharding_constraint(x, here), X, mesh=CLUSTER)


NAMES = {"data": 4, "model": 2}
SIZES = jax.ShapeDtypeStruct((64, 32), np.float32), jax.ShapeDtypeStruct((32, 64), np.float32)


def here(kind: AxisType = AxisType.Auto, shape: tuple[int, int] = (4, 2)) -> jax.sharding.Mesh:
    """A mesh of this machine's devices."""
    return jax.make_mesh(shape, ("data", "model"), axis_types=(kind,) * 2)


def product(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w


def with_batch(mesh: jax.sharding.Mesh) -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
    """The arguments of the product, the first with a sharding over a mesh."""
    x, w = SIZES
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, P("data"))), w


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("jitted", [lambda function: function, jax.jit], ids=["plain", "jitted"])
def test_names_are_a_mesh_of_this_machine_with_these_axes(jitted: Any, kind: AxisType) -> None:
    module = pyshardy.load(jitted(product), *with_batch(here(kind)), mesh=NAMES)
    assert sharded(module) == [BOTH[0], "None"]
    assert module.origin.explicit_axes == ()


def test_names_beside_shardings_on_devices() -> None:
    batch = NamedSharding(here(), P("data"))
    assert sharded(pyshardy.load(product, *SIZES, mesh=NAMES, in_shardings=(batch, None))) == [BOTH[0], "None"]
    assert sharded(pyshardy.load(jax.jit(product, in_shardings=(batch, None)), *SIZES, mesh=NAMES)) == [BOTH[0], "None"]
    arrays = jax.device_put(jnp.ones((64, 32)), batch), np.ones((32, 64), np.float32)
    assert sharded(pyshardy.load(jax.jit(product, in_shardings=(batch, None)), *arrays, mesh=NAMES)) == [
        BOTH[0],
        "None",
    ]


@pytest.mark.parametrize("arguments", [SIZES, with_batch(here())], ids=["shapes", "sharded shapes"])
def test_names_beside_a_mesh_of_devices_in_the_function(arguments: Any) -> None:
    mesh = here()

    def constrained(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P("data")))

    def mapped(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.shard_map(product, mesh=mesh, in_specs=(P("data"), P()), out_specs=P("data"))(x, w)

    for function in (constrained, mapped, jax.jit(constrained)):
        result = pyshardy.propagate(pyshardy.load(function, *arguments, mesh=NAMES))
        assert str(result.inputs[0].sharding) == '<@mesh, [{"data"}, {}]>'
        assert len(result.meshes) == 1


def test_two_meshes_are_named() -> None:
    message = (
        r"lowering a function for 8 devices, data=4,model=2: got arrays or shardings on devices of this machine, over "
        r"data=2,model=4, in the arguments .*try: if the devices are meant, pass their mesh itself, as mesh="
    )
    other = here(shape=(2, 4))
    for given in ({"in_shardings": (NamedSharding(other, P("data")), None)}, {}):
        arguments = SIZES if given else with_batch(other)
        with pytest.raises(UsageError, match=f"(?s){message}"):
            pyshardy.load(product, *arguments, mesh=NAMES, **given)


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (7, "reading a mesh: got an int, needed axes with sizes"),
        ({"x": 0}, 'size 0 for axis "x"'),
        ("x", "reading the axes of a mesh: got 'x'"),
        (Mesh([("x", 2)], [1, 0]), "needed devices in their natural order"),
    ],
)
def test_what_is_no_mesh(mesh, message: str) -> None:
    with pytest.raises(ShardyError, match=message):
        pyshardy.load(lambda x: x, X, mesh=mesh)


def test_a_mesh_of_real_devices() -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    module = pyshardy.load(layer, X, W, mesh=mesh, in_shardings=SPECS)
    assert sharded(module) == BOTH
    assert pyshardy.propagate(module).in_shardings[0].mesh == mesh


def test_the_stand_ins_are_alike_and_print() -> None:
    first, second = stand_in_mesh(MESH, "tpu"), stand_in_mesh(MESH, "tpu")
    assert first == second and first.abstract_mesh == MESH
    assert repr(first.devices.flat[3]) == "StandInDevice(tpu:3)"
    assert isinstance(first.devices.flat[0], StandInDevice)
    assert first.devices.flat[0].default_memory().kind == "device"


def test_what_pyshardy_reads_of_jax_is_there() -> None:
    """Names what broke if a new JAX is different inside; see `frontend/jax_private.py`."""
    lowered = jax.jit(lambda x, unused: jax.pure_callback(lambda a: a, x, x), keep_unused=False).lower(X, W)
    for name in ("kept_var_idx", "host_callbacks", "keepalive"):
        assert name in lowered._lowering.compile_args, f"compile_args has no {name}"
    assert key_name(jax.random.key(0).dtype) == "threefry2x32"
    assert "client" in dir(importlib.import_module("jax._src.distributed").global_state), "global_state has no client"
    for module, name in ((ad, "deflinear2"), (batching, "primitive_batchers"), (mlir, "register_lowering")):
        assert hasattr(module, name), f"{module.__name__} has no {name}"


def test_what_pyshardy_reads_of_inspections_is_there() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    rows = NamedSharding(mesh, P("x"))
    found: list[object] = []

    def function(x):
        jax.debug.inspect_array_sharding(x, callback=found.append)
        return x

    lowered = jax.jit(function, in_shardings=rows).lower(np.ones(4, np.float32))
    known = inspections(lowered)
    assert len(known) == 1, "what JAX keeps alive for an inspection has another name"
    module = pyshardy.load(lowered)
    (op,) = [op for op in walk(module.root) if op.name == "stablehlo.custom_call"]
    assert inspection_number(op.attrs["backend_config"]) in known, "the key of an inspection has another form"
    known[inspection_number(op.attrs["backend_config"])](hlo_sharding(rows, 1))
    assert found == [rows], "the function of an inspection takes something else"
    assert inspection_number(None) == 0


def test_what_pyshardy_reads_of_devices_is_there() -> None:
    lowered = jax.jit(lambda x: x).lower(X)
    assert tuple(lowered._lowering._device_list) == (jax.devices()[0],)
    assert "abstract_mesh" in stand_in_mesh(MESH, "tpu").__dict__, "Mesh.abstract_mesh is not cached there"
    assert stand_in_mesh(MESH, "tpu").abstract_mesh is abstract_mesh(MESH)


# Whatever a function may be


def test_platforms() -> None:
    module = pyshardy.load(lambda x: jnp.sort(x), X, platform="tpu")
    assert "stablehlo" in module.text()
    with pytest.raises(UsageError, match="got platform='tpu' for a str, needed a platform only for a function"):
        pyshardy.load("module {}", platform="tpu")


def test_platforms_that_jax_does_not_know() -> None:
    for function in (jnp.sort, jax.jit(jnp.sort).trace(X)):
        with pytest.raises(UsageError, match="got platform='abacus', needed one of cpu, cuda, rocm, tpu"):
            pyshardy.load(function, *([] if function is not jnp.sort else [X]), platform="abacus")
    assert pyshardy.load(layer, X, W, mesh=CLUSTER, platform="gpu").origin.platform == "cuda"


def test_specs_need_a_mesh() -> None:
    with pytest.raises(
        UsageError, match="got PartitionSpecs and no mesh, needed the mesh, as mesh= or by jax.set_mesh"
    ):
        pyshardy.load(layer, X, W, in_shardings=SPECS)


def test_traced_functions() -> None:
    traced = jax.jit(layer, in_shardings=tuple(NamedSharding(MESH, spec) for spec in SPECS)).trace(X, W)
    assert sharded(pyshardy.load(traced)) == sharded(pyshardy.load(traced, platform="tpu")) == BOTH
    with pytest.raises(UsageError, match="loading a traced function: got a mesh"):
        pyshardy.load(traced, mesh=CLUSTER)


def test_a_traced_function_with_callbacks_on_no_devices() -> None:
    traced = jax.jit(callback, in_shardings=NamedSharding(MESH, P("data"))).trace(X)
    with pytest.raises(UsageError, match=r"(?s)got callbacks or partitioners, which need devices.*try: pyshardy.load"):
        pyshardy.load(traced)


def test_keyword_and_static_arguments() -> None:
    def power(x, count, *, scale, unused=None):
        return x**count * scale["by"]

    module = pyshardy.load(power, X, 3, scale={"by": X}, static_argnums=1, mesh=CLUSTER, in_shardings=(P("data"),))
    result = pyshardy.propagate(module)
    assert [tensor.name for tensor in result.inputs] == ["x", "scale['by']"]
    assert result.in_specs == (P("data", None),)
    named = pyshardy.load(power, X, count=3, scale={"by": X}, static_argnames=("count",))
    assert named.text() == pyshardy.load(power, X, 3, scale={"by": X}, static_argnums=1).text()
    assert pyshardy.load(jax.jit(power, static_argnums=1), X, 3, scale={"by": X}).text() == named.text()


def test_donated_arguments() -> None:
    module = pyshardy.load(lambda x: x + 1, X, donate_argnums=0, mesh=CLUSTER, in_shardings=P("data"))
    assert "jax.buffer_donor" in module.text() or "tf.aliasing_output" in module.text()


def test_options_of_jit_for_a_jitted_function() -> None:
    with pytest.raises(UsageError, match="got static_argnums, needed them in jax.jit itself"):
        pyshardy.load(jax.jit(lambda x, n: x), X, 1, static_argnums=1)


def test_leaves_that_are_no_arrays() -> None:
    def run(model, x):
        return model["activation"](x @ model["w"]), model["activation"]

    module = pyshardy.load(
        run, {"w": W, "activation": jnp.tanh, "name": "mlp"}, X, mesh=CLUSTER, in_shardings=(None, P("data"))
    )
    result = pyshardy.propagate(module)
    assert [tensor.name for tensor in result.inputs] == ["model['w']", "x"]
    assert result.in_specs == ({"w": P(), "activation": None, "name": None}, P("data", None))
    assert result.out_specs == (P("data", None), None)
    assert not any(map(is_static, jax.tree.leaves(result.in_specs)))


def test_keys_nones_and_unused_arguments() -> None:
    def draw(key, nothing, unused, x):
        return jax.random.normal(key, x.shape) + x, nothing

    key = jax.eval_shape(lambda: jax.random.key(0))
    module = pyshardy.load(draw, key, None, W, X, mesh=CLUSTER, in_shardings=(None, None, None, P("data")))
    result = pyshardy.propagate(module)
    assert result.in_specs == (P(), None, None, P("data", None))
    assert result.out_specs == (P("data", None), None)


def test_exported_functions() -> None:
    exported = jax.export.export(
        jax.jit(lambda x: x * 2, in_shardings=NamedSharding(MESH, P("data"))), platforms=["tpu"]
    )(X)
    result = pyshardy.propagate(pyshardy.load(exported))
    assert result.in_specs == (P("data", None),)
    assert result.input_shardings(devices="abstract")[0].mesh.shape_tuple == MESH.shape_tuple
    with pytest.raises(UsageError, match="got 8 devices, needed 512"):
        _ = result.in_shardings


# What JAX cannot say


def test_shardings_of_pyshardy() -> None:
    specs = ({"w": pyshardy.PartitionSpec(None, ("model:(1)4", "?"), priorities=(None, 1))}, P("data"))
    module = pyshardy.load(
        lambda p, x: x @ p["w"],
        {"w": W},
        X,
        mesh=CLUSTER,
        in_shardings=specs,
        out_shardings=pyshardy.PartitionSpec("?"),
    )
    text = module.text()
    assert 'sdy.sharding<@mesh, [{}, {"model":(1)4, ?}p1]>' in text
    assert "sdy.sharding<@mesh, [{?}, {}]>" in text


def test_shardings_of_pyshardy_are_checked() -> None:
    with pytest.raises(InvalidShardingError, match='(?s)annotating x: .*unknown axis name "tensor".*at x, f32'):
        pyshardy.load(lambda x: x + 1, X, mesh=CLUSTER, in_shardings=pyshardy.PartitionSpec("tensor"))
