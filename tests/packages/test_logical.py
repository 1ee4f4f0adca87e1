"""Logical axis rules of a plan, applied by flax and by haliax, give the shardings of the plan."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.frontend.input_names import names_inside
from pyshardy.report.logical_fit import by_rules, by_table, without_end

MESH = {"data": 4, "model": 2}
OPTIONS: Any = {"mesh": MESH, "hardware": "v5e", "candidates": 20, "donate_argnums": 0, "constraints": False}
BATCH = jax.ShapeDtypeStruct((1024, 256), np.float32)
NAMES, AXES = ("a", "b", "c"), ("x", "y", "z")
RULES = st.lists(st.tuples(st.sampled_from(NAMES), st.lists(st.sampled_from(AXES), unique=True).map(tuple)), max_size=6)
ARRAYS = st.lists(st.sampled_from([*NAMES, "d", None]), max_size=4).filter(
    lambda names: len({*names} - {None}) == len([name for name in names if name])
)

pytestmark = pytest.mark.filterwarnings("ignore")  # the packages warn of each other and of jax


def needs(package: str, reason: str = "") -> Any:
    reason = reason or f"needs {package}, which `make test-packages` installs"
    return pytest.mark.skipif(find_spec(package) is None, reason=reason)


def as_dims(spec: Any) -> Any:
    return without_end(tuple((one,) if isinstance(one, str) else tuple(one or ()) for one in spec))


def pasted(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def other_than_planned(plan: pyshardy.Plan, argument: str, shardings: Any, mesh: Any) -> set[str]:
    """The groups of inputs of a plan that have another sharding in a tree."""
    leaves = jax.tree_util.tree_leaves_with_path(shardings, is_leaf=lambda one: isinstance(one, NamedSharding))
    found, compared = set(), 0
    for path, sharding in leaves:
        name = re.sub(r"\[<flat index 0>\]$", "", argument + jax.tree_util.keystr(path))  # inside of a named array
        for spec in plan.summary.specs:
            if not spec.is_output and names_inside(spec.name, [name]):
                compared += 1
                planned = NamedSharding(mesh, P(*(axes or None for axes in spec.axes)))
                if not sharding.is_equivalent_to(planned, len(spec.shape)):
                    found.add(spec.name)
    assert compared >= 4
    return found


def with_specs(plan: pyshardy.Plan, part: str, axes: Any) -> pyshardy.Plan:
    """A plan with another sharding of some inputs."""
    specs = tuple(replace(one, axes=axes) if part in one.name else one for one in plan.summary.specs)
    return replace(plan, summary=replace(plan.summary, specs=specs))


def misfits(found: Any) -> set[str]:
    return {name for one in found.misfits for name in one.arrays.inputs}


@needs("flax")
@given(ARRAYS, RULES)
def test_rules_in_order_are_those_of_linen(names: list[str | None], rules: list[tuple[str, tuple[str, ...]]]) -> None:
    import flax.linen as nn

    spec = nn.logical_to_mesh_axes(tuple(names), [(name, axes or None) for name, axes in rules])
    assert by_rules(tuple(names), rules) == as_dims(spec)


@needs("flax")
@given(ARRAYS, RULES)
def test_a_table_is_that_of_nnx(names: list[str | None], rules: list[tuple[str, tuple[str, ...]]]) -> None:
    from flax.core.spmd import from_sharding_rules

    whole = [(name, ()) for name in (*NAMES, "d")]
    spec: Any = from_sharding_rules(tuple(names), [*whole, *rules])
    assert by_table(tuple(names), rules) == as_dims(spec)


@needs("flax")
@needs("optax")
@pytest.mark.parametrize("is_apart", [False, True])
def test_linen(is_apart: bool) -> None:
    import flax.linen as nn
    import optax
    from flax.training import train_state

    init = nn.initializers.lecun_normal()

    class Decoder(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for layer in range(3):
                into = nn.with_logical_partitioning(init, ("embed", "mlp"))
                h = nn.gelu(nn.Dense(1024, use_bias=False, kernel_init=into, name=f"up_{layer}")(x))
                down = nn.with_logical_partitioning(init, ("mlp", "embed"))
                x = x + nn.Dense(256, use_bias=False, kernel_init=down, name=f"down_{layer}")(h)
            return x

    model, adam = Decoder(), optax.adam(1e-3)

    def create(key: Any) -> Any:
        params = model.init(key, jnp.ones((1, 256)))["params"]
        return train_state.TrainState.create(apply_fn=model.apply, params=params, tx=adam)

    def step(state: Any, batch: Any) -> Any:
        def loss(params: Any) -> Any:
            return jnp.mean((state.apply_fn({"params": params}, batch) - batch) ** 2)

        return state.apply_gradients(grads=jax.grad(loss)(state.params))

    shapes = jax.eval_shape(create, jax.random.key(0))
    plan = pyshardy.search(step, shapes, BATCH, **OPTIONS)
    if is_apart:
        plan = with_specs(plan, "down", (("model", "data"), ()))
    found = plan.logical_rules(state=nn.get_partition_spec(shapes), batch=P("batch", None))
    assert plan.logical_rules(state=shapes, batch=("batch", None)) == found
    assert len(misfits(found)) == (3 if is_apart else 0)  # parameters, and twice the state of the optimizer

    code = pasted(found.code("linen"))
    mesh = code["make_mesh"]()
    assert other_than_planned(plan, "state", code["shardings"](mesh, shapes), mesh) == misfits(found)
    code["RULES"] = tuple((name, None) for name, _ in found.pairs)
    assert other_than_planned(plan, "state", code["shardings"](mesh, shapes), mesh) > misfits(found)

    with jax.set_mesh(mesh), nn.logical_axis_rules(found.pairs):
        into = nn.logical_to_mesh_sharding(nn.get_partition_spec(shapes), mesh, found.pairs)
        state = jax.jit(create, out_shardings=into)(jax.random.key(0))
        batch = jax.device_put(
            np.ones(BATCH.shape, np.float32), NamedSharding(mesh, nn.logical_to_mesh_axes(("batch",)))
        )
        after = jax.jit(step, out_shardings=into)(state, batch)
    assert np.isfinite(np.asarray(after.params["up_0"]["kernel"].value)).all()


@needs("flax")
def test_nnx() -> None:
    from flax import nnx

    init = nnx.initializers.lecun_normal()

    class MLP(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            into = nnx.with_partitioning(init, ("embed", "mlp"))
            out = nnx.with_partitioning(init, ("mlp", "embed_out"))
            self.up = nnx.Linear(256, 1024, use_bias=False, rngs=rngs, kernel_init=into)
            self.down = nnx.Linear(1024, 256, use_bias=False, rngs=rngs, kernel_init=out)

    class Decoder(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.layers = nnx.List([MLP(rngs) for _ in range(3)])

        def __call__(self, x: Any) -> Any:
            for layer in self.layers:
                x = x + layer.down(nnx.relu(layer.up(x)))
            return x

    @nnx.jit
    def step(model: Any, batch: Any) -> Any:
        gradients = nnx.grad(lambda model: jnp.mean((model(batch) - batch) ** 2))(model)
        nnx.update(model, jax.tree.map(lambda p, g: p - 0.1 * g, nnx.state(model, nnx.Param), gradients))

    with nnx.use_eager_sharding(False):
        shapes = nnx.eval_shape(lambda: Decoder(nnx.Rngs(0)))
    options = {name: value for name, value in OPTIONS.items() if name != "donate_argnums"}
    plan = pyshardy.search(step, shapes, BATCH, **options)
    found = plan.logical_rules(model=nnx.state(shapes), batch=("batch", None))
    assert plan.logical_rules(model=nnx.get_partition_spec(nnx.state(shapes)), batch=("batch", None)) == found
    assert found.fits and found.one_per_name().fits

    code = pasted(found.code("nnx"))
    mesh = code["make_mesh"]()
    assert other_than_planned(plan, "model", code["shardings"](mesh, nnx.state(shapes)), mesh) == set()
    with jax.set_mesh(mesh), code["logical_axis_rules"](code["RULES"]):
        model = Decoder(nnx.Rngs(0))
        made = jax.tree.map(lambda array: array.sharding, nnx.state(model))
        assert other_than_planned(plan, "model", made, mesh) == set()
        step(
            model,
            jax.device_put(np.ones(BATCH.shape, np.float32), NamedSharding(mesh, P(dict(code["RULES"])["batch"]))),
        )


@needs("haliax", reason="needs haliax, which runs on jax 0.10 but not on 0.12")
def test_haliax() -> None:
    import equinox as eqx
    import haliax as hax
    import haliax.nn as hnn

    batch_axis, embed, mlp = hax.make_axes(batch=1024, embed=256, mlp=1024)

    class MLP(eqx.Module):
        up: Any
        down: Any

        @staticmethod
        def init(key: Any) -> Any:
            one, two = jax.random.split(key)
            return MLP(
                hnn.Linear.init(embed, mlp, key=one, use_bias=False),
                hnn.Linear.init(mlp, embed, key=two, use_bias=False),
            )

    def step(models: Any, x: Any) -> Any:
        def loss(models: Any) -> Any:
            y = x
            for model in models:
                y = y + model.down(hax.nn.relu(model.up(y)))
            return jnp.mean(y.array**2)

        return jax.tree.map(lambda p, g: p - 0.1 * g, models, jax.grad(loss)(models))

    models = [MLP.init(jax.random.key(layer)) for layer in range(3)]
    x = hax.named(jnp.ones((1024, 256)), (batch_axis, embed))
    plan = pyshardy.search(step, models, x, **OPTIONS)
    found = plan.logical_rules(models=models)
    code = pasted(found.code("haliax"))
    mesh = code["make_mesh"]()

    def others() -> set[str]:
        made = jax.tree.map(lambda array: array.sharding, code["shard"](mesh, models))
        return other_than_planned(plan, "models", made, mesh)

    assert others() == misfits(found.one_per_name())
    code["AXIS_MAPPING"].clear()
    assert others() > misfits(found.one_per_name())
