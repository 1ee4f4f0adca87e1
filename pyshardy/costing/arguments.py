"""What the arguments of a program are: parameters, optimizer state, a cache, or others.

Use decides first: an argument that is written in part and returned is a cache, whatever its name. Otherwise the name
decides. That an argument is multiplied says nothing: parameters and inputs both are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyshardy.costing.flat import BARRIER, BITCAST, Flat, FlatBlock, FlatOp
from pyshardy.costing.program import CostInput, CostOp, CostTensor
from pyshardy.rules.opspec import op_names

PARAMETERS, OPTIMIZER, CACHE, INPUTS = "parameters", "optimizer state", "cache", "other arguments"
_OPTIMIZER_NAMES = re.compile(
    r"(opt|state|moment|mean|square|\bmu\b|\bnu\b|\bm\b|\bv\b|velocity|accum|count|\btrace\b)", re.I
)
_PARAMETER_NAMES = re.compile(r"(param|weight|kernel|bias|theta|embed|variables|model|\bw\w*\b|\bb\d*\b)", re.I)
_OPTIMIZER_PARTS = re.compile(
    r"opt|opt_state|optimizer\w*|mu|nu|mean|square\w*|trace|momentum|moment\w*|velocity|accum\w*|count"
)
"""Parts of a path below which an optimizer keeps what it needs."""
_OPTIMIZERS = re.compile(r"opt|opt_state|optimizer\w*")
"""Parts of a path that leave no doubt."""
_CACHES = re.compile(r"(\w+_)?(kv_?)?cache|cached?_\w+|kv")
"""Parts of a path that name a cache of keys and values."""
_WEIGHTS = re.compile(r"kernel|bias|embedding|scale|weight|w|b|offset")
"""The last part of a weight's path in flax, haiku and equinox."""
BACKWARD = "transpose("
"""What JAX puts into the scopes of gradients."""

_GRADIENT = 1
"""The bit of what depends on a gradient; the others are those of arguments."""
_SCATTER, _UPDATE_SLICE = "stablehlo.scatter", "stablehlo.dynamic_update_slice"
_HEAVY = frozenset(
    op_names("stablehlo.", "dot dot_general convolution gather dynamic_gather custom_call sort fft cholesky")
    + op_names("stablehlo.", "triangular_solve reduce_window select_and_scatter scatter rng_bit_generator")
)
"""Ops that take more than one element of an operand for one of the result, other than sums.

Only their scopes and those of sums are looked up, which takes most of the time: a gradient comes through one of them.
"""
_REDUCE = "stablehlo.reduce"
_FIRST = frozenset(
    op_names("stablehlo.", "reshape transpose convert slice dynamic_slice bitcast_convert broadcast_in_dim reverse pad")
    + op_names("stablehlo.", "all_gather all_to_all collective_permute collective_broadcast dynamic_pad")
    + [BITCAST]
)
"""Ops whose result has elements of the first operand."""
_EACH = frozenset(("stablehlo.concatenate",))
_MOST_ROUNDS = 8
"""The most rounds of a loop to follow; every nested state needs one."""


def argument_category(name: str) -> str:
    """The category of an argument, by its path in the user's program.

    The name of the argument comes first. If it says nothing, deeper parts of the path decide. So do they for a "state",
    which may hold the weights of a model or the state of an optimizer.

    >>> argument_category("params['layers'][0]['w1']"), argument_category("state['mean']['w1']")
    ('parameters', 'optimizer state')
    >>> argument_category("state['blocks'][0]['attn']['q']['kernel']"), argument_category("args[0][2].mu['dense']['w']")
    ('parameters', 'optimizer state')
    >>> argument_category("cache['layers'][0]['v']"), argument_category("tokens")
    ('cache', 'other arguments')
    """
    first, *rest = _parts(name) or [""]
    if any(map(_CACHES.fullmatch, (first, *rest))):
        return CACHE
    if _PARAMETER_NAMES.search(first):
        return OPTIMIZER if rest and re.match(r"opt_state|opt", rest[0]) else PARAMETERS
    is_state = re.search(r"(?<!opt_)(?<!optimizer_)state", first, re.I) is not None
    is_optimizer = _OPTIMIZER_NAMES.search(first) is not None
    if is_optimizer and rest and rest[0].startswith("params"):
        return PARAMETERS
    if is_optimizer and not is_state or rest[:1] in (["m"], ["v"]) or any(map(_OPTIMIZER_PARTS.fullmatch, rest)):
        return OPTIMIZER
    if len(rest) > 1 and _WEIGHTS.fullmatch(rest[-1]):
        return PARAMETERS
    return OPTIMIZER if is_optimizer else INPUTS


def _parts(name: str) -> list[str]:
    return re.findall(r"[^\[\]'\".]+", name)


def argument_categories(inputs: Sequence[CostInput], flat: Flat) -> list[str]:
    """The category of every argument of a program, by its use and its name.

    Args:
        inputs: The arguments.
        flat: The program without calls.
    """
    uses = _Uses(flat)
    return [uses.category(place, entry.name) for place, entry in enumerate(inputs)]


class _Origins(NamedTuple):
    """The arguments that a value comes from, each a set of bits.

    Attributes:
        all: Those that it depends on, and `_GRADIENT`.
        near: Those that it depends on through elementwise ops, sums and moves.
        moved: Those whose elements it has.
        written: Of these, those that were written in part.
    """

    all: int = 0
    near: int = 0
    moved: int = 0
    written: int = 0

    def joined(self, other: _Origins) -> _Origins:
        return _Origins(*(one | more for one, more in zip(self, other)))


_NOTHING = _Origins()


class _Uses:
    """How the results of a program come from its arguments."""

    def __init__(self, flat: Flat) -> None:
        self.flat, self.body = flat, flat.body
        self.found: dict[int, _Origins] = {}
        self.heavy = 0
        """The arguments that an op of `_HEAVY` depends on."""
        self.has_scopes = self.has_gradients = False
        for place, value in enumerate(flat.body.arguments):
            bit = _bit(place)
            self.found[value] = _Origins(bit, bit, bit)
        self._block(flat.body)
        self._results()

    def _results(self) -> None:
        """Sort the arguments by what results are made of them."""
        own: dict[CostTensor, int] = {}
        for place, value in enumerate(self.body.arguments):
            own[self.flat.tensors[value]] = own.get(self.flat.tensors[value], 0) | _bit(place)
        results = [(self._at(value), own.get(self.flat.tensors[value], 0)) for value in self.body.results]
        self.written = _union(origins.written & same for origins, same in results)
        self.near = _union(origins.near for origins, _ in results)
        self.kept = _union(origins.near & same for origins, same in results)
        """Those near a result of their own type, which may replace them."""
        new = [(origins, origins.near & same) for origins, same in results if origins.all & _GRADIENT]
        self.trained = _union(near for _, near in new)
        """The arguments that are replaced by a sum of themselves and of something that depends on a gradient."""
        self.fed = _union(origins.all for origins, near in new if near & self.heavy)
        """Those that replaced parameters depend on."""

    def category(self, place: int, name: str) -> str:
        """The category of an argument, by its position and its name."""
        named, bit = argument_category(name), _bit(place)
        if named is OPTIMIZER and any(map(_OPTIMIZERS.fullmatch, _parts(name))):
            return named
        if self.written & bit and not (self.has_gradients and named in (PARAMETERS, OPTIMIZER)):
            return CACHE
        if not self.has_gradients:
            is_state = named is OPTIMIZER and self.has_scopes and self.heavy & bit
            return (CACHE if self.kept & bit else INPUTS) if is_state else named
        if not self.trained & bit:
            return INPUTS if named is OPTIMIZER and not self.near & bit else named
        if self.heavy & bit:
            return PARAMETERS if named is INPUTS else named
        return OPTIMIZER if self.fed & bit and self.flat.tensors[self.body.arguments[place]].shape else named

    def _at(self, value: int) -> _Origins:
        return self.found.get(value, _NOTHING)

    def _block(self, block: FlatBlock) -> None:
        for one in block.ops:
            self._op(one)

    def _op(self, one: FlatOp) -> None:
        op = one.op
        if one.inner:
            self._regions(one)
            return
        name = op.kind.name
        operands = [self._at(value) for value in op.operands]
        if name == BARRIER:
            self._set(op.results, operands)
            return
        everything = _union(origins.all for origins in operands)
        if name in _HEAVY:
            self.heavy |= everything & ~_GRADIENT
        scope = op.place.scope if op.place is not None and (name in _HEAVY or name == _REDUCE) else None
        if scope is not None:
            self.has_scopes = True
            if BACKWARD in scope:
                self.has_gradients = True
                everything |= _GRADIENT
        found = _of_op(op, operands)._replace(all=everything)
        self._set(op.results, [found] * len(op.results))

    def _regions(self, one: FlatOp) -> None:
        op = one.op
        if not op.is_loop:
            for region in one.inner:
                self._block(region)
            for place, result in enumerate(op.results):
                for region in one.inner:
                    if place < len(region.results):
                        self._join([result], [self._at(region.results[place])])
            return
        body = one.inner[1]
        state = [self._at(value) for value in op.operands]
        for _ in range(_MOST_ROUNDS):
            for region in one.inner:
                self._set(region.arguments, state)
                self._block(region)
            new = [old.joined(self._at(value)) for old, value in zip(state, body.results)]
            if new == state:
                break
            state = new
        self._set(op.results, state)

    def _set(self, values: Iterable[int], found: Iterable[_Origins]) -> None:
        self.found.update(zip(values, found))

    def _join(self, values: Iterable[int], found: Iterable[_Origins]) -> None:
        for value, origins in zip(values, found):
            self.found[value] = self._at(value).joined(origins)


def _bit(place: int) -> int:
    return 2 << place


def _union(sets: Iterable[int]) -> int:
    found = 0
    for one in sets:
        found |= one
    return found


def _of_op(op: CostOp, operands: Sequence[_Origins]) -> _Origins:
    """The origins of the results of an op without regions, but for `all`."""
    name = op.kind.name
    if name in (_SCATTER, _UPDATE_SLICE) and operands:
        into = operands[0]
        is_whole = op.kind.operands[0].shape == op.kind.operands[1].shape and name == _UPDATE_SLICE
        if is_whole:
            return operands[1]
        from_update = operands[1] if name == _UPDATE_SLICE else _NOTHING
        return into.joined(from_update)._replace(written=into.moved | into.written | from_update.written)
    if name in _HEAVY:
        return _NOTHING
    near = _union(origins.near for origins in operands)
    if name in _FIRST:
        moving: Sequence[_Origins] = operands[:1]
    elif name == "stablehlo.select":
        moving = operands[1:]
    else:
        moving = operands if name in _EACH else ()
    moved, written = _union(one.moved for one in moving), _union(one.written for one in moving)
    return _Origins(0, near, moved, written)
