"""Functions of published packages, loaded as their users write them, for a cluster that is not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.errors import UsageError

CLUSTER = {"data": 32, "model": 16}
X = jax.ShapeDtypeStruct((64, 32), np.float32)
BATCH = P("data", None)

pytestmark = pytest.mark.filterwarnings("ignore")  # the packages warn of each other and of jax


def needs(package: str) -> Any:
    reason = f"needs {package}, which `make test-packages` installs"
    return pytest.mark.skipif(find_spec(package) is None, reason=reason)


def loaded(function: Callable[..., Any], *args: Any, **options: Any) -> pyshardy.Propagation:
    return pyshardy.propagate(pyshardy.load(function, *args, mesh=CLUSTER, platform="tpu", **options))


def names(result: pyshardy.Propagation) -> list[str]:
    return [tensor.name for tensor in result.inputs]


@needs("flax")
def test_linen() -> None:
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            kernel = nn.with_partitioning(nn.initializers.lecun_normal(), (None, "model"))
            return nn.relu(nn.Dense(64, kernel_init=kernel)(x))

    net = Net()
    params = jax.eval_shape(net.init, jax.random.key(0), X)
    result = loaded(net.apply, params, X, in_shardings=(nn.get_partition_spec(params), P("data")))
    assert names(result)[1] == "variables['params']['Dense_0']['kernel'].value"
    assert result.in_specs[0]["params"]["Dense_0"]["kernel"].value == P(None, "model")
    assert result.out_specs == P("data", "model")


@needs("flax")
@pytest.mark.parametrize("graph", [True, False])
def test_nnx_jit(graph: bool) -> None:
    from flax import nnx

    model = nnx.Linear(32, 64, rngs=nnx.Rngs(0))
    step = nnx.jit(lambda model, x: model(x), in_shardings=(None, P("data")), graph=graph)
    for given in (X, jnp.ones((64, 32))):
        result = loaded(step, model, given)
        assert names(result)[-1] == "x"
        assert jax.tree.leaves(result.in_specs, is_leaf=lambda leaf: isinstance(leaf, P))[-1] == BATCH
    real = jnp.ones((64, 32))
    here = nnx.jit(lambda model, x: model(x), graph=graph)
    assert pyshardy.load(here.lower(model, real)).text() == pyshardy.load(here.trace(model, real)).text()


@needs("flax")
def test_the_names_of_a_model_under_nnx_jit() -> None:
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.up = nnx.Linear(32, 64, rngs=rngs)
            self.blocks = nnx.List([nnx.Linear(64, 64, rngs=rngs) for _ in range(2)])
            self.drop = nnx.Dropout(0.1, rngs=rngs)

        def __call__(self, x):
            for block in self.blocks:
                x = block(self.up(x)[..., :64])[..., :32]
            return self.drop(x)

    @nnx.jit
    def step(model, optimizer, x, *, y):
        loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
        optimizer.update(model, gradients)
        return loss

    model = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    module = pyshardy.load(step, model, optimizer, X, y=X, mesh=CLUSTER)
    found = pyshardy.propagate(module.annotate({"model.blocks[*].kernel": P(None, "model"), "x": P("data")}))
    shardings = {tensor.name: str(tensor.sharding) for tensor in found.inputs}
    assert shardings["model.blocks[1].kernel.value"] == '<@mesh, [{}, {"model"}]>'
    assert shardings["optimizer.opt_state[0].mu.blocks[1].kernel.value"] == '<@mesh, [{}, {"model"}]>'
    shapes = {tensor.name: tensor.shape for tensor in found.inputs}
    assert shapes["model.up.kernel.value"] == shapes["optimizer.opt_state[0].nu.up.kernel.value"] == (32, 64)
    assert "result[0][0].up.kernel.value" in [tensor.name for tensor in found.outputs]
    assert not any("states" in tensor.name for tensor in (*found.inputs, *found.outputs))
    names = [[tensor.name for tensor in side] for side in (found.inputs, found.outputs)]
    real = pyshardy.propagate(pyshardy.load(step.lower(model, optimizer, X, y=X)))
    assert [[tensor.name for tensor in side] for side in (real.inputs, real.outputs)] == names


@needs("flax")
def test_nnx_models_as_arguments() -> None:
    from flax import nnx

    model = nnx.eval_shape(lambda: nnx.Linear(32, 64, rngs=nnx.Rngs(0)))
    result = loaded(lambda model, x: model(x), model, X, in_shardings=(None, P("data")))
    assert names(result) == ["model.bias.value", "model.kernel.value", "x"]
    module = pyshardy.load(lambda model, x: model(x), model, X, mesh=CLUSTER)
    found = pyshardy.propagate(module.annotate({"model.kernel": P(None, "model"), "x": P("data")}))
    assert found.out_specs == P("data", "model")
    assert found.in_specs[0].bias.get_value() == P("model")


@needs("equinox")
def test_filter_jit() -> None:
    import equinox as eqx

    model = eqx.nn.MLP(32, 8, 32, 2, key=jax.random.key(0))

    @eqx.filter_jit(donate="all")
    def step(model, x, rate=0.1):
        loss, gradients = eqx.filter_value_and_grad(lambda m: jnp.mean(jax.vmap(m)(x) ** 2))(model)
        return eqx.apply_updates(model, jax.tree.map(lambda g: -rate * g, gradients)), loss

    abstract = eqx.filter_eval_shape(lambda: eqx.nn.MLP(32, 8, 32, 2, key=jax.random.key(0)))
    for given in (model, abstract):
        result = loaded(step, given, X, rate=0.2, in_shardings=(None, P("data")))
        assert names(result)[:2] == ["model.layers[0].weight", "model.layers[0].bias"]
        assert result.in_specs[1] == BATCH
        assert result.in_specs[0].activation is None
        assert result.out_specs[0].layers[0].weight in (P(), P(None, None))
    assert "jax.buffer_donor" in pyshardy.load(step, model, X, mesh=CLUSTER).text()
    assert len(pyshardy.propagate(pyshardy.load(step.lower(model, jnp.ones((64, 32))))).inputs) == 7


@needs("equinox")
def test_an_equinox_model_as_an_argument() -> None:
    import equinox as eqx

    model = eqx.nn.MLP(32, 8, 32, 2, key=jax.random.key(0))
    result = loaded(lambda model, x: jax.vmap(model)(x), model, X, in_shardings=(None, P("data")))
    assert result.out_specs == BATCH
    assert names(loaded(eqx.filter_jit(model), jax.ShapeDtypeStruct((32,), np.float32))) == ["x"]


@needs("haiku")
def test_haiku() -> None:
    import haiku as hk

    net = hk.transform(lambda x: hk.nets.MLP([64, 8])(x))
    params = jax.eval_shape(net.init, jax.random.key(0), X)
    module = pyshardy.load(net.apply, params, None, X, mesh=CLUSTER)
    result = pyshardy.propagate(module.annotate({"params['mlp/~/linear_0']['w']": P(None, "model"), "x": P("data")}))
    assert result.in_specs[0]["mlp/~/linear_1"]["w"] == P("model", None)
    assert result.in_specs[1] is None
    assert result.out_specs == BATCH
    with pytest.raises(UsageError, match=r"got arguments or shardings for a Transformed.*\n  try: its function .apply"):
        pyshardy.load(net, params, None, X)


@needs("keras")
def test_keras() -> None:
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras

    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(8)])
    assert loaded(model, X, in_shardings=P("data")).out_specs == BATCH
    (warning,) = pyshardy.propagate(pyshardy.load(model, X, mesh=CLUSTER)).warnings
    assert "used like weights" in warning
    assert "model.stateless_call" in warning
    weights = [jax.ShapeDtypeStruct(weight.shape, weight.dtype) for weight in model.trainable_variables]
    options = {"training": True, "static_argnames": "training"}
    module = pyshardy.load(model.stateless_call, weights, [], X, mesh=CLUSTER, **options)
    found = pyshardy.propagate(module.annotate({"trainable_variables[0]": P(None, "model"), "args[0]": P("data")}))
    assert found.in_specs[0][1:3] == [P("model"), P("model", None)]


@needs("keras")
@pytest.mark.parametrize("step, part", [("train_step", "optimizer"), ("test_step", "metrics"), ("predict_step", "")])
def test_the_names_of_a_model_in_the_steps_of_keras(step: str, part: str) -> None:
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras

    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(32)])
    model.compile(optimizer="adam", loss="mse")
    model.train_on_batch(np.zeros((8, 32), "float32"), np.zeros((8, 32), "float32"))  # builds the optimizer, too
    lists = {
        "optimizer": (model.optimizer.variables, model.metrics_variables), "metrics": (model.metrics_variables,),
    }.get(part, ())  # fmt: skip
    state = [
        [jax.ShapeDtypeStruct(variable.shape, variable.dtype) for variable in variables]
        for variables in (model.trainable_variables, model.non_trainable_variables, *lists)
    ]
    found = pyshardy.propagate(pyshardy.load(getattr(model, step), state, (X, X) if part else (X,), mesh=CLUSTER))
    kernel = f"model['{model.trainable_variables[0].path}']"
    assert names(found)[0] == kernel and any(name.startswith(f"{part}['") for name in names(found)) == bool(part)
    assert not any(name.startswith("state[") for name in names(found))
    if step == "train_step":
        assert f"result[1].{kernel}" in [tensor.name for tensor in found.outputs]


@needs("flax")
@pytest.mark.parametrize("options", [{}, {"graph": False}, {"graph": True}])
def test_run_updates_the_models_of_nnx_jit(options: dict[str, bool]) -> None:
    import optax
    from flax import nnx

    rule = optax.sgd(0.1)

    def make(rule=rule):
        model = nnx.Linear(32, 64, rngs=nnx.Rngs(0))
        return model, nnx.Optimizer(model, rule, wrt=nnx.Param)

    def step(model, optimizer, x, *, y):
        loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
        optimizer.update(model, gradients)
        return loss

    x, y = np.arange(64.0, dtype="float32").reshape(2, 32) / 64, np.ones((2, 64), "float32")
    step = nnx.jit(step, **options)
    (here, optimizer), (there, other) = make(), make()
    module = pyshardy.load(step, *make(), x, y=y, mesh={"data": 2, "model": 2})
    found = pyshardy.partition(module.annotate({"model.kernel": P(None, "model"), "x": P("data")}))
    for _ in range(3):
        np.testing.assert_allclose(found.run(there, other, x, y=y), step(here, optimizer, x, y=y), rtol=1e-5)
    np.testing.assert_allclose(there.kernel[...], here.kernel[...], rtol=1e-5)
    assert there.kernel[...].sharding.spec == P(None, "model")
    assert int(other.step[...]) == 3
    assert found.propagated.out_specs == P()
    with pytest.raises(UsageError, match=r"got an array of shape \(3, 32\) for x, needed shape \(2, 32\)"):
        found.run(there, other, np.ones((3, 32), "float32"), y=y)
    with pytest.raises(UsageError, match="got arguments that differ in something other than arrays"):
        found.run(*make(optax.sgd(0.2)), x, y=y)
    with pytest.raises(UsageError, match="needed arguments like those"):
        found.run(there, x, y=y)


@needs("flax")
def test_shardings_of_a_model_under_nnx_jit_are_a_state() -> None:
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.blocks = nnx.List([nnx.Linear(32, 32, rngs=rngs) for _ in range(12)])  # "10" comes before "9"

        def __call__(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    def apply(model, x):
        return model(x)

    model, x = Net(nnx.Rngs(0)), np.ones((4, 32), "float32")
    module = pyshardy.load(nnx.jit(apply), nnx.eval_shape(lambda: Net(nnx.Rngs(0))), x, mesh={"data": 2, "model": 2})
    module = module.annotate({"model.blocks[10].kernel": P(None, "model"), "x": P("data")})
    result = pyshardy.propagate(module)
    state, batch = result.in_specs
    assert [state.blocks[number].kernel.get_value() for number in (2, 10, 11)] == [
        P(),
        P(None, "model"),
        P("model", None),
    ]
    shardings, placed = result.input_shardings(devices=jax.devices()[:4])
    nnx.update(model, jax.device_put(nnx.state(model), shardings))
    assert model.blocks[10].kernel[...].sharding.spec == P(None, "model")
    jitted = nnx.jit(apply, in_shardings=(nnx.StateSharding(shardings), placed))
    np.testing.assert_allclose(jitted(model, jax.device_put(x, placed)), apply(model, x), rtol=1e-5)
    assert result.out_specs == P("data", None) == batch

    grouped = pyshardy.propagate(pyshardy.load(jitted, model, jax.device_put(x, placed)))
    assert jax.tree.leaves(grouped.in_specs[0], is_leaf=lambda leaf: isinstance(leaf, P)).count(P(None, "model")) == 1
    np.testing.assert_allclose(grouped.run(model, jax.device_put(x, placed)), apply(model, x), rtol=1e-5)


@needs("flax")
def test_run_updates_statistics_keys_and_metrics() -> None:
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.norm, self.drop = nnx.BatchNorm(16, rngs=rngs), nnx.Dropout(0.3, rngs=rngs)
            self.dense = nnx.Linear(16, 4, rngs=rngs)

        def __call__(self, x):
            return self.dense(self.drop(self.norm(x)))

    @nnx.jit(donate_argnums=0)
    def step(model, metric, x):
        loss, gradients = nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
        metric.update(values=loss)
        return gradients

    x = np.arange(128.0, dtype="float32").reshape(8, 16) / 64
    here, there = ((Net(nnx.Rngs(0)), nnx.metrics.Average()) for _ in range(2))
    module = pyshardy.load(step, Net(nnx.Rngs(0)), nnx.metrics.Average(), x, mesh={"data": 4, "model": 2})
    found = pyshardy.partition(module.annotate({"x": P("data"), "model.dense.kernel": P("model")}))
    for _ in range(2):
        expected, gradients = step(*here, x), found.run(*there, x)
        assert jax.tree.structure(gradients) == jax.tree.structure(expected)
    np.testing.assert_allclose(gradients.dense.kernel[...], expected.dense.kernel[...], atol=1e-5)
    np.testing.assert_allclose(there[0].norm.mean[...], here[0].norm.mean[...], rtol=1e-2)  # sums in another order
    assert int(there[0].drop.rngs.count[...]) == int(here[0].drop.rngs.count[...]) == 2
    np.testing.assert_allclose(there[1].compute(), here[1].compute(), rtol=1e-5)
    assert {"metric.count.value", "metric.total.value"} <= {tensor.name for tensor in found.inputs}
    state, metric, _ = found.propagated.in_specs
    assert (state.dense.kernel.get_value(), metric.total.get_value()) == (P("model", None), P())
    assert found.propagated.out_specs.dense.kernel == P("model", None)


@needs("equinox")
def test_what_filter_jit_returns_is_what_equinox_returns() -> None:
    import equinox as eqx

    @eqx.filter_jit
    def step(model, x):
        gradients = eqx.filter_grad(lambda model: jnp.sum(model(x)[0] ** 2))(model)
        return eqx.apply_updates(model, jax.tree.map(lambda g: -0.01 * g, gradients))

    class Model(eqx.Module):
        linear: eqx.nn.Linear
        dropout: eqx.nn.Dropout

        def __call__(self, x):
            return jax.vmap(self.linear)(self.dropout(x, inference=True)), self.dropout.p

    model = Model(eqx.nn.Linear(16, 8, key=jax.random.key(0)), eqx.nn.Dropout(0.5))
    x = np.ones((4, 16), "float32")
    found = pyshardy.partition(pyshardy.load(step, model, x, mesh={"data": 2}).annotate({"x": P("data")}))
    assert len(found.outputs) == 2  # not the rate of dropout
    twice = found.run(found.run(model, x), x)
    assert (twice.dropout.p, twice.dropout.inference) == (0.5, False)
    np.testing.assert_allclose(twice.linear.weight, step(step(model, x), x).linear.weight, rtol=1e-5)
