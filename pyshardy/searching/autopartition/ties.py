"""Which outputs replace which inputs in the next step, by their names: the new parameters, the new optimizer state."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

_HEAD: Final = re.compile(r"[^\[.]*")
_RESULT: Final = re.compile(r"result(\[\d+\])?")
_DEEPER: Final = re.compile(r"result(\[\d+\]){1,2}")
_ALL: Final = "result"


class Leaf(Protocol):
    """A named array among the arguments or results of a program."""

    @property
    def name(self) -> str:
        """Its path in the user's program."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of its dimensions."""
        ...

    @property
    def element(self) -> str:
        """MLIR's text of the element type."""
        ...


class _Place(NamedTuple):
    """A leaf by its position, with its type."""

    position: int
    type: tuple[tuple[int, ...], str]


_Tree = Mapping[str, _Place]
"""The leaves of an argument or a result by what follows its own name."""


def ties_of(inputs: Sequence[Leaf], outputs: Sequence[Leaf], donated: Collection[int]) -> dict[int, int]:
    """By input the output that replaces it in the next step, for arguments and results that are the same trees.

    Args:
        inputs: The inputs.
        outputs: The outputs.
        donated: The positions of inputs that are donated. An argument that is no tree replaces a result only then.
    """
    arguments = _trees((head_of(one.name), one) for one in inputs)
    results = _trees((_result_head(one.name), one) for one in outputs)
    # behind the others: a list that is all that the function returns
    results.setdefault(_ALL, {one.name.removeprefix(_ALL): _place(at, one) for at, one in enumerate(outputs)})
    found: dict[int, int] = {}
    used: set[str] = set()
    for leaves in results.values():
        for head, given in arguments.items():
            if head in used or not _is_same_tree(given, leaves):
                continue
            if any(given) or all(place.position in donated for place in given.values()):
                used.add(head)
                found.update((place.position, leaves[tail].position) for tail, place in given.items())
                break
    taken = set(found.values())
    free = {one.name: _place(at, one) for at, one in enumerate(outputs) if at not in taken}
    for head, given in arguments.items():
        if head not in used and all(given):
            start = _deeper(head, given, free)
            for tail, place in given.items() if start else ():
                found[place.position] = free.pop(start + tail).position
    return found


def head_of(name: str) -> str:
    """The argument that a name begins with: "params" of "params['w']"."""
    match = _HEAD.match(name)
    return match.group() if match else ""


def _trees(leaves: Iterable[tuple[str, Leaf]]) -> dict[str, dict[str, _Place]]:
    """The trees of leaves, each by the name that its own begins with."""
    found: dict[str, dict[str, _Place]] = {}
    for position, (head, leaf) in enumerate(leaves):
        found.setdefault(head, {})[leaf.name[len(head) :]] = _place(position, leaf)
    return found


def _place(position: int, leaf: Leaf) -> _Place:
    return _Place(position, (leaf.shape, leaf.element))


def _deeper(head: str, given: _Tree, free: _Tree) -> str:
    """The result that replaces an argument that frameworks return deeper: `result[0][1]`, or `result[1].model`.

    Empty if there is none.
    """
    first = next(iter(given))
    starts = (name.removesuffix(first) for name in free if name.endswith(first))
    for start in starts:
        is_deeper = _DEEPER.fullmatch(start.removesuffix(f".{head}"))
        if is_deeper and _is_same_tree(given, {tail: free[start + tail] for tail in given if start + tail in free}):
            return start
    return ""


def _is_same_tree(argument: _Tree, result: _Tree) -> bool:
    """Whether a result has all leaves of an argument. It may have more: a leaf that no op uses is not an input."""
    return all(tail in result and result[tail].type == place.type for tail, place in argument.items())


def _result_head(name: str) -> str:
    """`result`, or `result[0]` where the function returns several."""
    match = _RESULT.match(name)
    return match.group() if match else name
