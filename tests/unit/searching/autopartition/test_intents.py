"""The constraints that experts write beside shardings of inputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pyshardy.core.axes import Dims
from pyshardy.searching.autopartition.constraints import ConstrainableValue
from pyshardy.searching.autopartition.intents import expert_constraints, expert_dims
from pyshardy.searching.autopartition.space import Assignment, Space

from .problems import space_from
from .test_tactics import shape as of_shape
from .test_tactics import space_of

LAYERS = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<8x16x64xf32> loc("x"), %u: tensor<64x256xf32> loc("params['up']"),
                %d: tensor<256x64xf32> loc("params['down']"), %u2: tensor<64x256xf32> loc("params['up2']"),
                %d2: tensor<256x64xf32> loc("params['down2']")) -> tensor<8x16x64xf32> {
  %0 = stablehlo.dot_general %x, %u, contracting_dims = [2] x [0] : (tensor<8x16x64xf32>, tensor<64x256xf32>) -> tensor<8x16x256xf32>
  %1 = stablehlo.dot_general %0, %d, contracting_dims = [2] x [0] : (tensor<8x16x256xf32>, tensor<256x64xf32>) -> tensor<8x16x64xf32>
  %2 = stablehlo.dot_general %1, %u2, contracting_dims = [2] x [0] : (tensor<8x16x64xf32>, tensor<64x256xf32>) -> tensor<8x16x256xf32>
  %3 = stablehlo.dot_general %2, %d2, contracting_dims = [2] x [0] : (tensor<8x16x256xf32>, tensor<256x64xf32>) -> tensor<8x16x64xf32>
  return %3 : tensor<8x16x64xf32>
}"""
HIDDEN, BETWEEN = 0, 1
WHOLE: Dims = ((), (), ())


def sets(space: Space, assignment: Assignment, own: Dims = WHOLE) -> dict[str, dict[int, Dims]]:
    """The sets of constraints of a hidden value, and of one between layers, by name."""
    sites = [
        ConstrainableValue(HIDDEN, (8, 16, 256), "f32", 1, own),
        ConstrainableValue(BETWEEN, (8, 16, 64), "f32", 1, own),
    ]
    found = expert_constraints(space, assignment, sites, classes_of(space))
    assert len({tuple(one.chosen.items()) for one in found}) == len(found)
    return {one.name: one.chosen for one in found}


def classes_of(space: Space) -> dict[int, tuple[int, ...]]:
    first = {}
    for value, shape in enumerate(space.problem.program.shapes):
        if shape in ((8, 16, 256), (8, 16, 64)) and space.problem.program.owners[value] >= 0:
            first.setdefault(shape, space.classes_of(value))
    return {HIDDEN: first[8, 16, 256], BETWEEN: first[8, 16, 64]}


def assignment_of(space: Space, specs: dict[str, Dims]) -> Assignment:
    return tuple(specs.get(group.name, empty) for group, empty in zip(space.groups, space.empty))


def test_values_have_the_classes_of_inputs() -> None:
    space = space_from(LAYERS)
    classes = classes_of(space)
    batch, length, width = (space.class_of[0, dim] for dim in range(3))
    assert classes[BETWEEN] == (batch, length, width)
    assert classes[HIDDEN] == (batch, length, space.class_of[1, 1])


def test_weights_stored_along_the_batch_leave_it_on_activations() -> None:
    """FSDP: the batch stays along both axes, whatever dimension of weights is split along them."""
    space, both = space_from(LAYERS), ("data", "model")
    stored = {
        name: ((), both) if "up" in name else (both, ()) for name in ("params['up']", "params['up2']", "params['down']")
    }
    found = sets(space, assignment_of(space, {"x": (both, (), ()), **stored}))
    assert found["activations along the batch"] == {HIDDEN: (both, (), ()), BETWEEN: (both, (), ())}
    assert found["activations between layers along the batch"] == {BETWEEN: (both, (), ())}


def test_megatron_splits_hidden_values_and_sequences_between_layers() -> None:
    space = space_from(LAYERS)
    up, down = ((), ("model",)), (("model",), ())
    weights = {"params['up']": up, "params['up2']": up, "params['down']": down, "params['down2']": down}
    found = sets(space, assignment_of(space, {"x": (("data",), (), ()), **weights}))
    inside = (("data",), (), ("model",))
    assert found["activations along the batch"] == {HIDDEN: inside, BETWEEN: (("data",), (), ())}
    assert found["activations along the batch, sequences over model"] == {
        HIDDEN: inside, BETWEEN: (("data",), ("model",), ())
    }  # fmt: skip


def test_what_propagation_gives_anyway_is_no_constraint() -> None:
    space, both = space_from(LAYERS), ("data", "model")
    assignment = assignment_of(space, {"x": (both, (), ())})
    assert sets(space, assignment) and not sets(space, assignment, (both, (), ()))


def test_axes_that_do_not_divide_are_left_out_and_ideas_are_those_of_the_sets() -> None:
    space = space_from(LAYERS)
    assignment = assignment_of(space, {"x": (("data", "model"), (), ())})
    site = ConstrainableValue(BETWEEN, (4, 16, 64), "f32", 1, WHOLE)
    assert expert_dims(space, assignment, [site], classes_of(space)) == {BETWEEN: [(("data",), (), ())]}
    known = site._replace(dims=(("data",), (), ()))
    assert expert_dims(space, assignment, [known], classes_of(space)) == {BETWEEN: []}
    assert expert_dims(space, assignment, [site], {}) == {BETWEEN: []}


def mixture(params, x):
    gates = jax.nn.softmax(x @ params["router"])
    slots = jax.nn.one_hot(jnp.cumsum(gates > 0.25, 1) - 1, 32)
    sent = jnp.einsum("btec,btw->ebcw", slots, x)
    made = jnp.einsum("ebch,ehw->ebcw", jnp.tanh(jnp.einsum("ebcw,ewh->ebch", sent, params["up"])), params["down"])
    return (jnp.einsum("ebcw,btec,bte->btw", made, slots, gates) ** 2).mean()


def test_what_is_dispatched_goes_to_experts_and_their_gates_stay_with_the_tokens() -> None:
    params = {"router": of_shape(64, 4), "up": of_shape(4, 64, 256), "down": of_shape(4, 256, 64)}
    space = space_of(mixture, params, of_shape(8, 16, 64), mesh={"data": 4, "expert": 2})
    both, experts = ("data", "expert"), (("expert",), (), ())
    specs = {"data[0]": (both, (), ()), "params['up']": experts, "params['down']": experts}
    shapes = {0: (4, 8, 32, 64), 1: (8, 16, 4)}
    values = {one: value for value, one in enumerate(space.problem.program.shapes)}
    sites = [ConstrainableValue(at, one, "f32", 1, ((),) * len(one)) for at, one in shapes.items()]
    classes = {at: space.classes_of(values[one]) for at, one in shapes.items()}
    found = {one.name: one.chosen for one in expert_constraints(space, assignment_of(space, specs), sites, classes)}
    sent = (("expert",), ("data",), (), ())
    assert found["activations along the batch, dispatched to experts"] == {0: sent, 1: (both, (), ())}
    assert found["activations along the batch, weights' axes first"] == {0: sent, 1: (("data",), (), ("expert",))}
    assert found["activations along the batch"] == {0: ((), both, (), ()), 1: (both, (), ())}


def test_those_of_weights_inside_of_layers_come_first_and_then_those_of_all_values() -> None:
    space, both = space_from(LAYERS), ("data", "model")
    up, down = ((), ("model",)), (("model",), ())
    weights = {"params['up']": up, "params['up2']": up, "params['down']": down, "params['down2']": down}
    first, *rest = sets(space, assignment_of(space, {"x": (both, (), ()), **weights}))
    assert first == "activations inside of layers along the batch, weights' axes first"
    parts = ["layers" in name for name in rest]
    assert parts == sorted(parts) and not parts[0]
