"""Programs with other shardings of inputs, and of what follows these."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyshardy.checkup.program.families import dims_of
from pyshardy.checkup.program.ties import ties_in
from pyshardy.core.scopes import scope_path
from pyshardy.core.sharding import TensorSharding
from pyshardy.frontend.annotate import store_annotations
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.functions import main_function
from pyshardy.ir.locations import read_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.readers import Readers
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.results.hints.code import Code
from pyshardy.source.constraining import is_in_helper


@dataclass(frozen=True, slots=True)
class OtherInputs:
    """Other shardings of inputs as a change of a program: see `annotated`."""

    pairs: Sequence[tuple[InterfaceTensor, TensorSharding]]

    def __call__(self, module: Module) -> Module:
        """The program with it."""
        return annotated(module, self.pairs)

    def at(self, places: Mapping[int, int]) -> OtherInputs:
        """The same for a program with some of the inputs.

        Args:
            places: Their numbers there, by those here.
        """
        return OtherInputs(
            [(replace(one, index=places[one.index]), sharding) for one, sharding in self.pairs if one.index in places]
        )


def annotated(module: Module, pairs: Sequence[tuple[InterfaceTensor, TensorSharding]]) -> Module:
    """A program with other shardings of inputs, of the annotated outputs that replace them, and of their constraints.

    Flax constrains a weight as it is annotated where a layer reads it, and so its gradient and its copy for
    `jax.checkpoint`.

    Args:
        module: The program.
        pairs: The inputs with their shardings.
    """
    replaced = replaced_outputs(module, [one for one, _ in pairs])
    edits = [("arg_attrs", one, sharding) for one, sharding in pairs]
    edits += [("res_attrs", replaced[one.index], sharding) for one, sharding in pairs if one.index in replaced]
    found = store_annotations(module, edits)
    _follow(found, pairs)
    return found


def _follow(module: Module, pairs: Sequence[tuple[InterfaceTensor, TensorSharding]]) -> None:
    """Change the constraints that repeat the annotations of inputs, in place.

    Those of gradients are known by their line and layer, as long as no other input shares these.
    """
    news = {one.index: (one, sharding) for one, sharding in pairs}
    edits: dict[Op, TensorSharding] = {}
    keys: dict[Hashable, TensorSharding] = {}
    kept: set[Hashable] = set()
    readers = Readers(module.root)
    for arg in main_function(module.root).region.blocks[0].args:
        if not any(user.name == CONSTRAINT for user in arg.users()):
            continue
        if arg.index not in news:
            kept |= {_constraint_key(user, module) for user in arg.users() if user.name == CONSTRAINT}
            continue
        one, sharding = news[arg.index]
        for op in [op for op, _ in readers.of(arg) if op.name == CONSTRAINT]:
            if one.sharding is not None and dims_of(op.attrs["sharding"]) == dims_of(one.sharding):
                edits[op] = keys[_constraint_key(op, module)] = sharding
    if not edits:
        return
    for op in ops_named(module.root, (CONSTRAINT,)):
        key = _constraint_key(op, module)
        if key in keys and key not in kept:
            edits.setdefault(op, keys[key])
    with module.context:
        for op, sharding in edits.items():
            op.set_attr("sharding", sharding)


def _constraint_key(op: Op, module: Module) -> Hashable:
    """What the constraints of a weight and of its gradient share: the line, the layer, the shape and the spec."""
    code, scope = Code.of(op, module.name), scope_path(read_location(op.location, module.name).scope)
    place = next((place[:2] for place in code.path if not is_in_helper(place)), None)
    return place, code.shapes, scope, dims_of(op.attrs["sharding"])


def replaced_outputs(module: Module, changed: Sequence[InterfaceTensor]) -> dict[int, InterfaceTensor]:
    """By the number of an input the output that replaces it in the next step, if it is annotated as the input is."""
    inputs, outputs = input_tensors(module.root), output_tensors(module.root)
    ties = ties_in(module, inputs, outputs)
    numbers = {one.index for one in changed}
    found = {
        one.index: outputs[ties[place]] for place, one in enumerate(inputs) if one.index in numbers and place in ties
    }
    given = {one.index: one.sharding for one in changed}
    return {number: one for number, one in found.items() if one.sharding is not None and is_same(one, given[number])}


def is_same(one: InterfaceTensor, sharding: TensorSharding | None) -> bool:
    """Whether a tensor has this sharding, both known."""
    return sharding is not None and one.sharding is not None and dims_of(one.sharding) == dims_of(sharding)
