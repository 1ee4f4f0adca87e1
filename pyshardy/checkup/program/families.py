"""Weights with the optimizer state that belongs to them, among the inputs that a step returns anew."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from math import prod
from typing import NamedTuple

from pyshardy.checkup.program.keras_paths import paths_in_lists, told_name
from pyshardy.checkup.program.ties import ties_in, unreturned
from pyshardy.core.alike import common, general
from pyshardy.core.axes import Dims
from pyshardy.core.sharding import TensorSharding
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.module import Module
from pyshardy.searching.autopartition.space import are_equal_shards
from pyshardy.searching.autopartition.ties import head_of

_KEYS = re.compile(r"\[[^\]]*\]|[^\[.]+")
_MOST_NAMES = 3
"""The names that are told of several."""
LEAST_LEAVES = 5
"""An argument with so many arrays that a step does not return is a tree of weights rather than a batch."""
_HEADS = 2
"""The most keys of a weight's name that its optimizer state does not share, as in `state.params['w']`."""


class Family(NamedTuple):
    """A weight of all layers with its optimizer state, or a cache.

    Attributes:
        name: The name of the weight.
        members: All inputs, the weights first.
        dims: The axes of those that are split most.
        bytes: What a device holds of all.
    """

    name: str
    members: tuple[InterfaceTensor, ...]
    dims: Dims
    bytes: float

    @property
    def weights(self) -> tuple[InterfaceTensor, ...]:
        """The weight of each layer."""
        return tuple(one for one in self.members if general(one.name) == general(self.members[0].name))

    @property
    def own(self) -> Dims:
        """The axes of the weight."""
        sharding = self.members[0].sharding
        return () if sharding is None else dims_of(sharding)


def batch_rows(module: Module) -> set[tuple[str, ...]]:
    """The axes that split the first dimensions of the inputs that a step does not return.

    Args:
        module: The program.
    """
    return {dims_of(one.sharding)[0] for one in unreturned(module) if one.sharding is not None and one.shape}


def families(module: Module, sizes: Mapping[str, int]) -> Iterator[Family]:
    """The inputs that a step returns anew, by the weight that they belong to.

    Args:
        module: The program.
        sizes: The sizes of the axes of its mesh; inputs with parts of axes are left out.
    """
    given = input_tensors(module.root)
    ties = ties_in(module, given, output_tensors(module.root))
    inputs = [one for place, one in enumerate(given) if place in ties and one.shape and one.sharding is not None]
    inputs = [one for one in inputs if all(axis in sizes for axis in axes_of(one))]
    found: dict[tuple[str, tuple[int, ...], str], list[InterfaceTensor]] = {}
    paths = paths_in_lists(module)
    for one in sorted(inputs, key=lambda one: len(_KEYS.findall(one.name))):
        name, path = general(one.name), general(paths.get(one.index, ""))
        own = (key for key in found if key[1] == one.shape and key[2] == path and (path or _belongs(name, key[0])))
        found.setdefault(next(own, (name, one.shape, path)), []).append(one)
    for (name, *_), members in found.items():
        dims = max((dims_of(one.sharding) for one in members if one.sharding), key=lambda one: _shards(one, sizes))
        held = sum(known_bytes(one.shape, one.element) / prod(sizes[axis] for axis in axes_of(one)) for one in members)
        weights = [one for one in members if general(one.name) == name]
        members = [*weights, *(one for one in members if one not in weights)]
        yield Family(common(told_name(module, one) for one in weights), tuple(members), dims, held)


def others(module: Module, sizes: Mapping[str, int]) -> Iterator[Family]:
    """The inputs that a step does not return anew, those of all layers as one.

    Args:
        module: The program.
        sizes: The sizes of the axes of its mesh; inputs with parts of axes are left out.
    """
    alike: dict[tuple[str, TensorSharding], list[InterfaceTensor]] = {}
    for one in unreturned(module):
        if one.shape and one.sharding is not None and all(axis in sizes for axis in axes_of(one)):
            alike.setdefault((general(told_name(module, one)), one.sharding), []).append(one)
    for (_, sharding), members in alike.items():
        held = sum(known_bytes(one.shape, one.element) / _shards(dims_of(sharding), sizes) for one in members)
        yield Family(common(told_name(module, one) for one in members), tuple(members), dims_of(sharding), held)


def frozen(module: Module, sizes: Mapping[str, int]) -> Iterator[Family]:
    """The weights that a step does not return, as of a model that is served or only adapted.

    Args:
        module: The program.
        sizes: The sizes of the axes of its mesh; inputs with parts of axes are left out.
    """
    found = list(others(module, sizes))
    trees: dict[str, list[InterfaceTensor]] = {}
    for one in (one for family in found for one in family.members):
        trees.setdefault(head_of(one.name), []).append(one)
    of_weights = {head for head, leaves in trees.items() if len(leaves) >= LEAST_LEAVES and not _is_batch(leaves)}
    return (one for one in found if head_of(one.members[0].name) in of_weights)


def _is_batch(leaves: Sequence[InterfaceTensor]) -> bool:
    """Whether the arrays of a tree have rows of one batch: most are split along a first dimension of one size."""
    rows = Counter(one.shape[0] for one in leaves if one.sharding is not None and one.sharding.dim_axes[0])
    return 2 * max(rows.values(), default=0) > len(leaves)


def siblings(one: Family, known: Sequence[Family]) -> list[Family]:
    """A weight and those that are annotated as it is: the other weights of its layer of this shape, or of this name.

    A mistake in a rule or in a line is one of all of them, as of `q`, `k` and `v`, or of the `head` of two models.

    Args:
        one: A weight.
        known: All weights.
    """
    shape, keys = one.members[0].shape, _KEYS.findall(general(one.name))
    return [
        other
        for other in known
        if len(other.members[0].shape) == len(shape)
        and other.own == one.own
        and (other.members[0].shape == shape or _KEYS.findall(general(other.name))[-1:] == keys[-1:])
    ]


def shown(names: Iterable[str]) -> str:
    """Names of inputs in words, with a star for the numbers of layers; of many the first ones.

    >>> shown(["w[0]['q']", "w[1]['q']", "w[0]['k']", "w[1]['k']"])
    "`w[*]['q']` and `w[*]['k']`"
    >>> shown(["q", "k", "v", "o", "up"])
    '`q`, `k`, `v` and 2 more'
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(general(name), []).append(name)
    texts = [f"`{common(group)}`" for group in alike.values()]
    if len(texts) > _MOST_NAMES:
        texts = [*texts[:_MOST_NAMES], f"{len(texts) - _MOST_NAMES} more"]
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def dims_of(sharding: TensorSharding) -> Dims:
    """The names of the axes of each dimension."""
    return tuple(tuple(axis.name for axis in axes) for axes in sharding.dim_axes)


def axes_of(one: InterfaceTensor) -> list[str]:
    """The axes of an input."""
    return [] if one.sharding is None else [axis for axes in dims_of(one.sharding) for axis in axes]


def split_further(shape: Sequence[int], dims: Dims, axis: str, sizes: Mapping[str, int]) -> list[Dims]:
    """The axes of an input with one more, at each dimension that all of them divide.

    >>> split_further((4, 3, 8), (("x",), (), ()), "y", {"x": 2, "y": 2})
    [(('x', 'y'), (), ()), (('x',), (), ('y',))]
    """
    ways = [tuple((*axes, axis) if at == dim else axes for at, axes in enumerate(dims)) for dim in range(len(dims))]
    return [way for way in ways if are_equal_shards(shape, way, sizes)]


def _shards(dims: Dims, sizes: Mapping[str, int]) -> int:
    return prod(sizes[axis] for axes in dims for axis in axes)


def _belongs(name: str, weight: str) -> bool:
    """Whether a name ends as that of a weight, without the weight's first keys.

    >>> _belongs("state[0].mu['up']", "params['up']"), _belongs("params['down']", "params['up']")
    (True, False)
    >>> _belongs("optimizer['adam/block_*_up_kernel_momentum']", "model['block_*/up/kernel']")
    True
    """
    path = _last_key(weight)
    if "/" in path and f"{path.replace('/', '_')}_" in _last_key(name):  # as keras names its variables
        return True
    one, other = (_KEYS.findall(text)[::-1] for text in (name, weight))
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other)))
    return shared >= max(1, len(other) - _HEADS)


def _last_key(name: str) -> str:
    return str(_KEYS.findall(name)[-1]).strip("[']")
