"""What people would do, on programs where it is easy to get wrong."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import make_topology
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.autopartition.roles import Style, megatron, styles, width_class
from pyshardy.searching.autopartition.space import Space
from pyshardy.searching.autopartition.tactics import _Tactics, tactics
from pyshardy.searching.program.search_program import problem_of


def space_of(loss: object, params: object, *data: object, mesh: dict[str, int]) -> Space:
    """The decisions of a training step."""

    def step(params, *data):
        return jax.tree.map(lambda p, g: p - g, params, jax.grad(loss)(params, *data))

    return space_of_step(step, (0,), params, *data, mesh=mesh)


def space_of_step(step: object, donated: tuple[int, ...], *arguments: object, mesh: dict[str, int]) -> Space:
    """The decisions of a step that gives back what is donated."""
    module = pyshardy.load(jax.jit(step, donate_argnums=donated), *arguments, mesh=mesh, platform="tpu")
    topology = make_topology(find_hardware("v5e"), tuple(mesh.items()))
    return Space(problem_of(module, topology, CollectiveModel.FORMULA, Objective(1e12)))


def shape(*sizes: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, "float32")


def named(space: Space, assignment: object) -> dict[str, object]:
    return {group.name: dims for group, dims in zip(space.groups, assignment) if any(dims)}


def mlp(mesh: dict[str, int]) -> Space:
    def loss(params, x, y):
        return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"] - y) ** 2)

    return space_of(loss, {"up": shape(32, 128), "down": shape(128, 32)}, shape(64, 32), shape(64, 32), mesh=mesh)


def test_the_width_of_a_simple_mlp_is_that_of_its_inputs() -> None:
    space = mlp({"data": 2, "model": 4})
    assert named(space, megatron(space, space.empty, "model")) == {
        "params['up']": ((), ("model",)),
        "params['down']": (("model",), ()),
    }


def test_a_matrix_with_one_class_twice_is_split_along_columns_too() -> None:
    def loss(params, x, y):
        h, _ = jax.lax.scan(
            lambda h, x: (jnp.tanh(h @ params["state"] + x @ params["in"]), None), jnp.zeros((8, 64)), x
        )
        return jnp.mean((h @ params["out"] - y) ** 2)

    params = {"in": shape(32, 64), "state": shape(64, 64), "out": shape(64, 32)}
    space = space_of(loss, params, shape(4, 8, 32), shape(8, 32), mesh={"model": 4})
    found = {str(named(space, megatron(space, space.empty, "model", style))) for style in styles(space)}
    wanted = {
        "params['in']": ((), ("model",)),
        "params['out']": (("model",), ()),
        "params['state']": ((), ("model",)),
    }
    assert str(wanted) in found


def test_weights_stay_whole_where_their_heads_do_not_divide_or_are_split_along_something_else() -> None:
    def loss(params, x):
        q, k = (jnp.einsum("bw,whd->bhd", x, params[name]) for name in "qk")
        return jnp.mean((x + jnp.einsum("bhd,bhd,hw->bw", q, k, params["o"])) ** 2)

    params = {"q": shape(64, 2, 32), "k": shape(64, 2, 32), "o": shape(2, 64)}
    space = space_of(loss, params, shape(16, 64), mesh={"model": 4})
    width = width_class(space)
    assert named(space, megatron(space, space.empty, "model", Style(width))) == {}
    split = named(space, megatron(space, space.empty, "model", Style(width, is_strict=False)))
    assert split == {"params['k']": ((), (), ("model",)), "params['q']": ((), (), ("model",))}


def test_axes_that_are_alike_are_not_tried_in_each_others_place() -> None:
    alike, unlike = tactics(mlp({"a": 2, "b": 2})), tactics(mlp({"a": 2, "b": 4}))
    assert len(alike) < len(unlike)
    mixed = "Megatron over b, data over a", "Megatron over a, data over b"
    assert [[name in found for name in mixed] for found in (alike, unlike)] == [[True, False], [True, True]]


@pytest.mark.slow
def test_no_two_tactics_have_one_name() -> None:
    def loss(params, x, y):
        return jnp.mean((jnp.tanh(x @ params[0]) @ params[1] @ params[2] - y) ** 2)

    weights = [shape(64, 64), shape(64, 64), shape(64, 32)]
    space = space_of(loss, weights, shape(64, 64), shape(64, 32), mesh={"data": 2, "model": 4})
    names = [name for name, _ in _Tactics(space).all()]
    found = {name: [one for other, one in _Tactics(space).all() if other == name] for name in names}
    assert all(len(set(same)) == 1 for same in found.values())
    assert len({style.name(space) for style in styles(space)}) == len(list(styles(space))) > 2


def test_pictures_and_their_texts_are_both_the_batch() -> None:
    def loss(params, pictures, texts):
        one, other = jnp.tanh(pictures @ params["picture"]), jnp.tanh(texts @ params["text"])
        scores = one @ other.T
        return jnp.mean(jax.nn.logsumexp(scores, -1) + jax.nn.logsumexp(scores, 0) - 2 * jnp.diagonal(scores))

    params = {"picture": shape(48, 32), "text": shape(24, 32)}
    space = space_of(loss, params, shape(64, 48), shape(64, 24), mesh={"data": 2, "model": 4})
    both = (("data", "model"), ())
    assert named(space, tactics(space)["data over data+model"]) == {"data[0]": both, "data[1]": both}


def test_experts_may_be_over_the_whole_mesh_with_sequences_over_it() -> None:
    def loss(params, x):
        sent = jnp.einsum("btw,we->ebtw", x, params["gate"])
        made = jnp.tanh(jnp.einsum("ebtw,ewh->ebth", sent, params["up"]))
        return jnp.mean(jnp.einsum("ebth,ehw->btw", made, params["down"]) ** 2)

    params = {"gate": shape(32, 8), "up": shape(8, 32, 64), "down": shape(8, 64, 32)}
    space = space_of(loss, params, shape(2, 64, 32), mesh={"data": 2, "model": 4})
    every = ("data", "model")
    wanted = {
        "params['down']": (every, (), ()),
        "params['gate']": ((), every),
        "params['up']": (every, (), ()),
        "data[0]": ((), every, ()),
    }
    assert wanted in [named(space, assignment) for assignment in tactics(space).values()]
