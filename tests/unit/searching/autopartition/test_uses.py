"""Inputs make a group if they are used alike, and not because they are named alike."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from pyshardy.searching.autopartition.moves import batch_class, states
from pyshardy.searching.autopartition.registry import answer_of
from pyshardy.searching.autopartition.uses import used_alike

from .test_tactics import named, shape, space_of, space_of_step

MESH = {"data": 2, "model": 4}


def groups(loss: object, params: object, *data: object) -> dict[str, int]:
    """The groups by name, with how many inputs they have."""
    return {group.name: len(group.members) for group in space_of(loss, params, *data, mesh=MESH).groups}


def test_a_tuple_of_unlike_things_is_no_group() -> None:
    def loss(params, x, y):
        return jnp.mean((x @ params[0] + jnp.tanh(y) * params[1] - x) ** 2)

    assert groups(loss, (shape(32, 32), shape(32, 32)), shape(32, 32), shape(32, 32)) == {
        "params[0]": 1,
        "params[1]": 1,
        "data[0]": 1,
        "data[1]": 1,
    }


def test_layers_that_hand_on_what_they_are_given_are_one_group() -> None:
    def loss(params, x):
        for w in params:
            x = x + jnp.tanh(x @ w["up"]) @ w["down"]
        return jnp.mean(x**2)

    layer = {"up": shape(32, 64), "down": shape(64, 32)}
    assert groups(loss, [layer] * 3, shape(64, 32)) == {"params[*]['down']": 3, "params[*]['up']": 3, "data[0]": 1}


def test_of_weights_that_follow_each_other_every_second_is_of_a_group() -> None:
    def loss(params, x):
        for w in params:
            x = jnp.tanh(x @ w)
        return jnp.mean(x**2)

    space = space_of(loss, [shape(64, 64)] * 3, shape(64, 64), mesh=MESH)
    assert [group.members for group in space.groups] == [(0, 2), (1,), (3,)]
    names = [group.name for group in space.groups]
    assert len(set(names)) == len(names)
    one = answer_of(space, {"params[0]": [[], ["model"]], "params[1]": [["model"], []]}).assignment
    assert list(named(space, one).values()) == [((), ("model",)), (("model",), ())]


def test_of_many_equal_layers_inputs_are_one_group_and_others_are_not() -> None:
    def loss(params, x, y):
        for w in params:
            x = jnp.tanh(x @ w)
        return jnp.mean((x - y) ** 2)

    found = groups(loss, [shape(64, 64)] * 12, shape(64, 64), shape(64, 64))
    assert found == {"params[*]": 12, "data[0]": 1, "data[1]": 1}


def test_state_is_grouped_as_parameters_are() -> None:
    def step(params, mean, x):
        def loss(params):
            h = x
            for w in params:
                h = jnp.tanh(h @ w)
            return jnp.mean(h**2)

        mean = jax.tree.map(lambda m, g: 0.9 * m + g, mean, jax.grad(loss)(params))
        return jax.tree.map(lambda p, m: p - m, params, mean), mean

    weights = [shape(64, 64)] * 3
    space = space_of_step(step, (0, 1), weights, weights, shape(64, 64), mesh=MESH)
    assert [(group.members, group.twin) for group in space.groups[:4]] == [
        ((0, 2), None),
        ((1,), None),
        ((3, 5), 0),
        ((4,), 1),
    ]


def test_layers_may_be_numbered_in_their_names() -> None:
    def loss(params, x):
        for layer in range(3):
            w = params[f"layer_{layer}"]
            x = x + jnp.tanh(x @ w["up"]) @ w["down"]
        return jnp.mean(x**2)

    layer = {"up": shape(32, 64), "down": shape(64, 32)}
    assert groups(loss, {f"layer_{number}": layer for number in range(3)}, shape(64, 32)) == {
        "params['layer_*']['down']": 3,
        "params['layer_*']['up']": 3,
        "data[0]": 1,
    }


def trained(state: dict[str, object], x: object) -> dict[str, object]:
    """A step with momentum that keeps its state in one argument, as a `TrainState` does."""

    def loss(params):
        y = x
        for w in (*params["enc"], *params["dec"]):
            y = jnp.tanh(y @ w["up"]) @ (w["norm"][:, None] * w["down"])
        return jnp.mean(y**2)

    mean = jax.tree.map(lambda m, g: 0.9 * m + g, state["opt"][0]["mu"], jax.grad(loss)(state["params"]))
    return {"params": jax.tree.map(lambda p, m: p - m, state["params"], mean), "opt": ({"mu": mean},)}


def test_the_state_of_an_optimizer_is_found_by_its_use() -> None:
    layer = {"up": shape(32, 64), "norm": shape(64), "down": shape(64, 32)}
    params = {"enc": [layer] * 2, "dec": [layer] * 2}
    state = {"params": params, "opt": ({"mu": params},)}
    space = space_of_step(trained, (0,), state, shape(64, 32), mesh=MESH)
    names = [group.name for group in space.groups]
    twins = {group.name: names[group.twin] for group in space.groups if group.twin is not None}
    assert twins == {name: name.replace("['opt'][0]['mu']", "['params']") for name in names if "'mu'" in name}
    assert len(states(space)) == len(twins) == 6


def test_without_state_no_parameter_is_the_state_of_another() -> None:
    def step(state, x):
        loss = jax.grad(lambda params: jnp.mean(jnp.tanh(x @ params["a"]["w"] + x @ params["b"]["w"]) ** 2))
        return jax.tree.map(lambda p, g: p - g, state, loss(state))

    params = {"a": {"w": shape(32, 64)}, "b": {"w": shape(32, 64)}}
    assert states(space_of_step(step, (0,), params, shape(64, 32), mesh=MESH)) == []


def test_the_batch_may_come_behind_microbatches() -> None:
    def loss(params, x, y):
        def tick(total, at):
            made = jax.vmap(lambda w: jnp.tanh(x[at] @ w))(params["w"])
            return total + jnp.mean((made - y[at]) ** 2), None

        return jax.lax.scan(tick, 0.0, jnp.arange(4))[0]

    data = shape(4, 16, 8, 32)
    space = space_of(loss, {"w": shape(2, 32, 32)}, data, data, mesh=MESH)
    batch = batch_class(space)
    assert batch is not None
    assert [(space.groups[group].name, dim) for group, dim in space.classes[batch].places] == [("data[*]", 1)]


@pytest.mark.parametrize(
    ("ops", "groups"), [(["add", "multiply"], [[0, 1, 2]]), (["dot", "add", "multiply"], [[0, 1], [2]])]
)
def test_an_input_of_a_layer_that_is_left_out_has_the_other_uses_of_its_kind(
    ops: list[str], groups: list[list[int]]
) -> None:
    names = ["convert", "add", "multiply"] * 2 + ops  # two layers, and what is left of the uses of a third
    layers = [(0, 2), (-1, 1), (-1, 1)] * 2 + [(-1, 1)] * len(ops)
    users = [[0, 1, 2], [3, 4, 5], list(range(6, 6 + len(ops)))]
    program = SimpleNamespace(users=users, kind=lambda op: SimpleNamespace(name=names[op], rule=None), tensors=[()] * 9)
    inputs = [SimpleNamespace(value=value, shape=(8, 8)) for value in range(3)]
    problem, dims = SimpleNamespace(inputs=inputs, layers=layers, program=program), SimpleNamespace(find=lambda *at: at)
    assert used_alike(problem, dims, [0, 1, 2]) == groups  # type: ignore[arg-type]
