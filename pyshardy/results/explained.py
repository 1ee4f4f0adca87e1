"""Makes the input of explanations from a traced run of propagation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_symbol
from pyshardy.errors import InvalidModuleError
from pyshardy.explain.subject import Label, Subject
from pyshardy.explain.why import Why
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.dtypes import element_bits
from pyshardy.ir.functions import result_sharding, return_op
from pyshardy.ir.locations import read_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.program_index import FunctionResultPlace
from pyshardy.ir.shardings import get_sharding
from pyshardy.source.places import user_place
from pyshardy.transforms.context import Traced


def make_why(
    traced: Traced,
    inputs: Iterable[InterfaceTensor],
    outputs: Iterable[InterfaceTensor],
    given: tuple[Collection[int], Collection[int]],
    result: Module,
) -> Why:
    """The object that explains the values of a result.

    Args:
        traced: The run of propagation.
        inputs: The inputs of the result.
        outputs: Its outputs.
        given: The positions of the inputs and of the outputs to which the user gave shardings.
        result: The module that later passes made from the nodes of the run.
    """
    return Why(make_subject(traced, inputs, outputs, given, result.name, result.root))


def make_subject(
    traced: Traced,
    inputs: Iterable[InterfaceTensor],
    outputs: Iterable[InterfaceTensor],
    given: tuple[Collection[int], Collection[int]],
    name: str = "-",
    result: Op | None = None,
) -> Subject:
    """A traced run with the names that its user knows.

    Args:
        traced: The run.
        inputs: The inputs of the main function.
        outputs: Its outputs.
        given: The positions of the inputs and of the outputs to which the user gave shardings.
        name: The name of the source text, which MLIR calls "-".
        result: The module that later passes made from the nodes of the run, if its values are those of the run.
    """
    program, index, propagated, grouped = traced
    numbers: dict[Any, int] = {value: number for number, value in enumerate(index.values)}
    names = {
        number: f"result[{value.result}] of {format_symbol(value.function.attrs['sym_name'])}"
        for number, value in enumerate(index.values)
        if isinstance(value, FunctionResultPlace)
    }
    arguments, results = index.borders()
    names |= {number: f"result[{position}]" for position, number in results.items()}
    names |= {results[tensor.index]: tensor.name for tensor in outputs if tensor.index in results}
    names |= {arguments[tensor.index]: tensor.name for tensor in inputs}
    given_inputs, given_outputs = given
    annotated = [number for position, number in arguments.items() if position in given_inputs]
    annotated += [number for position, number in results.items() if position in given_outputs]
    return Subject(
        program=program,
        shardings=propagated.shardings,
        steps=propagated.steps,
        labels=labels_of(traced, name),
        names=dict(sorted(names.items())),
        given=frozenset(annotated),
        element_bytes=_ElementBytes(index.values),
        dtypes=_Dtypes(index.values),
        final={} if result is None else _final(result, index.values, numbers),
        grouped=grouped,
        erased=frozenset(propagated.erased),
    )


def _final(
    root: Op, values: Sequence[Value | FunctionResultPlace], numbers: Mapping[Any, int]
) -> dict[int, TensorSharding | None]:
    """The shardings of the result, by value."""
    found: dict[int, TensorSharding | None] = {}
    for op in walk(root):
        args = [arg for region in op.regions for block in region.blocks for arg in block.args]
        for value in (*op.results, *args):
            if value in numbers:
                found[numbers[value]] = get_sharding(value)
    for number, place in enumerate(values):
        if isinstance(place, FunctionResultPlace):
            found[number] = result_sharding(place.function, place.result)
    return found


def labels_of(traced: Traced, name: str = "-") -> Sequence[Label]:
    """The labels of the ops of a run; `name` is the name of the source text."""
    program = traced.program
    return _Labels(traced.places.ops, [kind.name for kind in program.kinds], program.kind_of, name)


class _Labels(Sequence[Label]):
    """The labels of all ops, made on demand."""

    def __init__(self, ops: Sequence[Op], names: Sequence[str], kind_of: Sequence[int], name: str) -> None:
        self._ops, self._names, self._kind_of, self._name = ops, names, kind_of, name
        self._known: dict[tuple[str, Any], Label] = {}

    def __len__(self) -> int:
        return len(self._ops)

    def __getitem__(self, index: Any) -> Any:
        location = self._ops[index].location
        key = self._names[self._kind_of[index]], location
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = label_of(key[0], location, self._name)
        return found


def label_of(op: str, location: Any, name: str = "-") -> Label:
    """The label of an op at a location; its place is the user's innermost line, if there is one.

    >>> location = 'loc("jit(f)/dot_general"(callsite("mlp"("model.py":41:8 to :20) at "f"("model.py":50:2 to :9))))'
    >>> label = label_of("stablehlo.dot_general", location)
    >>> label.name, label.scope, label.function, label.file, label.line, label.column
    ('stablehlo.dot_general', 'jit(f)/dot_general', 'mlp', 'model.py', 41, 8)
    """
    scope, _, calls = read_location(location, name)
    functions = {call.place: call.function for call in reversed(calls)}
    frames = list(reversed(functions))
    place = user_place(frames)
    if place is None:
        return Label(op, scope)
    return Label(
        op,
        scope,
        functions[place] or None,
        *place,
        library_place=None if place == frames[0] else frames[0],
    )


class _Types:
    """The type of every value, looked up on demand."""

    def __init__(self, values: Sequence[Value | FunctionResultPlace]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def _type(self, index: int) -> Any:
        value = self._values[index]
        if isinstance(value, FunctionResultPlace):
            value = return_op(value.function).operands[value.result]
        return value.type


class _ElementBytes(_Types, Sequence[int]):
    """The bytes of an element of every value."""

    def __getitem__(self, index: Any) -> Any:
        try:
            return -(-element_bits(self._type(index).element) // 8)
        except InvalidModuleError:
            return 0


class _Dtypes(_Types, Sequence[str]):
    """The element type of every value."""

    def __getitem__(self, index: Any) -> Any:
        return self._type(index).element or ""
