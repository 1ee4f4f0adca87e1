"""A plan as a few rules, as teams write them: a pattern of names and a spec. The first rule that fits decides."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.core.spec import PartitionSpec, format_spec

_KEY = re.compile(r"\[[^\]]*\]|\.?[^\[.]+")
_LAST_WORD = re.compile(r"(.*\w_)[A-Za-z]+('\])")
REST = "*"
"""The pattern of the last rule, which fits every name."""


class NamedSpec(NamedTuple):
    """The sharding of some inputs.

    Attributes:
        name: Their name; `[*]` stands for every layer.
        axes: The axes.
        arrays: The number of inputs.
        shape: The shape of each.
    """

    name: str
    axes: Dims
    arrays: int
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanRule:
    """A rule of a plan.

    Attributes:
        pattern: The names that it fits; `*` stands for any text.
        axes: The mesh axes of each dimension, major to minor, without dimensions at the end that have none.
        count: The number of inputs that it decides.
    """

    pattern: str
    axes: Dims
    count: int

    @property
    def spec(self) -> PartitionSpec:
        """The sharding, as JAX writes it."""
        return PartitionSpec(*self.axes)

    def fits(self, name: str) -> bool:
        """Whether it fits a name.

        >>> PlanRule("*['w1']", (("data",),), 1).fits("params['layers'][3]['w1']")
        True
        """
        return re.fullmatch(".*".join(map(re.escape, self.pattern.split("*"))), name, re.DOTALL) is not None


def rules_of(specs: Iterable[NamedSpec]) -> tuple[PlanRule, ...]:
    """The fewest rules by the ends of names that give every input its sharding; the last keeps all others whole.

    A rule is for all names with the same end: a parameter, its gradient and its optimizer state. An end is as short as
    it can be while all inputs with this end have one sharding. If only most of them do, the others have rules before
    it. So optimizer state that is sharded further than its parameters has rules of its own: one for the whole argument,
    if that is enough.

    Args:
        specs: The shardings of inputs, each name once.

    >>> rules = rules_of([
    ...     NamedSpec("params['layers'][*]['w']", ((), ("model",)), 24),
    ...     NamedSpec("state['mean']['layers'][*]['w']", ((), ("model",)), 24),
    ...     NamedSpec("params['layers'][*]['b']", ((),), 24), NamedSpec("x", (("data",), ()), 1)])
    >>> [(rule.pattern, str(rule.spec), rule.count) for rule in rules]
    [("*['w']", "PartitionSpec(None, 'model')", 48), ('x', "PartitionSpec('data')", 1), ('*', 'PartitionSpec()', 24)]
    """
    known = [one._replace(axes=without_end(one.axes)) for one in specs]
    if not known:
        return ()
    by_end: dict[str, Counter[Dims]] = {}
    for one in known:
        for end in _ends(one.name):
            by_end.setdefault(end, Counter())[one.axes] += 1
    shapes: dict[str, set[tuple[int, ...]]] = {}
    for one in known:
        for end in _ends(one.name):
            shapes.setdefault(end, set()).add(one.shape)
    common = {end: axes for end, found in by_end.items() if len(shapes[end]) == 1 and (axes := _common(found))}
    counts: dict[tuple[str, Dims], int] = {}
    later: dict[tuple[str, Dims], int] = {}
    for one in known:
        ends = _ends(one.name)
        shortest = next((end for end in ends if len(shapes[end]) == 1), one.name)
        end = next((end for end in ends if len(by_end[end]) == 1), one.name)
        pattern = end if end == one.name else f"*{end}"
        if common.get(shortest) == one.axes:
            later[f"*{shortest}", one.axes] = later.get((f"*{shortest}", one.axes), 0) + one.arrays
            continue
        if shortest not in common and not one.axes:
            pattern = REST
        counts[pattern, one.axes] = counts.get((pattern, one.axes), 0) + one.arrays
    last = counts.pop((REST, ()), 0)
    found = [PlanRule(pattern, axes, count) for (pattern, axes), count in counts.items()]
    rest = [PlanRule(pattern, axes, count) for (pattern, axes), count in later.items()]
    found = _without_last_words([*_by_starts(found, known), *rest], known)
    if not all(_decided(found, one) for one in known):  # a pattern with stars in the middle fits other names, too
        found = [PlanRule(one.name, one.axes, one.arrays) for one in known]
        found.sort(key=lambda rule: sum(rule.fits(one.name) for one in known))
        last = 0
    return (*found, PlanRule(REST, (), last))


def _by_starts(rules: Sequence[PlanRule], known: Sequence[NamedSpec]) -> list[PlanRule]:
    """The rules, in which one for a whole argument replaces those for its single inputs; it comes last.

    >>> specs = [NamedSpec(f"params['{name}']", (), 1) for name in "ab"] + [NamedSpec("mean['a']", (("x",),), 1)]
    >>> [rule.pattern for rule in _by_starts([PlanRule(one.name, one.axes, 1) for one in specs], specs)]
    ["mean['a']", 'params*']
    """
    names = {one.name for one in known}
    single = {rule.pattern: rule for rule in rules if rule.pattern in names}
    found = [rule for rule in rules if rule.pattern not in names]
    left = [one for one in known if not any(rule.fits(one.name) for rule in found)]
    by_start: dict[str, list[NamedSpec]] = {}
    for one in left:
        key = _KEY.match(one.name)
        by_start.setdefault(key.group() if key else one.name, []).append(one)
    joined = []
    for start, members in by_start.items():
        rule = PlanRule(f"{start}*", members[0].axes, sum(one.arrays for one in members))
        theirs = [one for one in left if rule.fits(one.name)]
        is_one = len(members) > 1 and theirs == members and all(one.axes == rule.axes for one in members)
        if is_one and all(one.name in single for one in members):
            joined.append(rule)
            for one in members:
                del single[one.name]
    return [*found, *single.values(), *joined]


def _without_last_words(rules: Sequence[PlanRule], known: Sequence[NamedSpec]) -> list[PlanRule]:
    """The rules, in which one replaces those whose names differ in the last word: state of an optimizer in keras.

    >>> names = [f"*['adam/w_kernel_{kind}']" for kind in ("momentum", "velocity")]
    >>> [rule.pattern for rule in _without_last_words([PlanRule(name, (("x",),), 1) for name in names], [])]
    ["*['adam/w_kernel_*']"]
    """
    alike: dict[tuple[Dims, str, str], list[PlanRule]] = {}
    for rule in rules:
        match = _LAST_WORD.fullmatch(rule.pattern)
        if match is not None:
            alike.setdefault((rule.axes, match[1], match[2]), []).append(rule)
    found = list(rules)
    for (_, start, end), members in alike.items():
        if len(members) > 1:
            joined = PlanRule(f"{start}*{end}", members[0].axes, sum(one.count for one in members))
            fewer = [joined if one is members[0] else one for one in found if one is members[0] or one not in members]
            if all(_decided(fewer, one) for one in known if _decided(found, one)):
                found = fewer
    return found


def _common(found: Counter[Dims]) -> Dims:
    """The sharding of most names with this end, if some differ; else ()."""
    axes, count = found.most_common(1)[0]
    return axes if len(found) > 1 and count > 1 else ()


def _decided(rules: Sequence[PlanRule], one: NamedSpec) -> bool:
    """Whether the first rule that fits a name gives it its sharding."""
    return next((rule.axes for rule in rules if rule.fits(one.name)), ()) == one.axes


def _ends(name: str) -> Sequence[str]:
    """The ends of a name, the shortest first: its last key, its last two keys, and so on.

    >>> _ends("state.params['w'][*]")
    ["['w'][*]", ".params['w'][*]", "state.params['w'][*]"]
    """
    starts = [match.start() for match in _KEY.finditer(name)]
    ends = [name[start:] for start in reversed(starts)]
    named = [end for end in ends if re.search(r"\w", end)]
    return named or [name]


def without_end(dims: Dims) -> Dims:
    """The axes without dimensions at the end that have none."""
    while dims and not dims[-1]:
        dims = dims[:-1]
    return dims


def code_of(rules: Sequence[PlanRule], mesh: Mapping[str, int]) -> str:
    r"""Python source that gives every array of a function's arguments its sharding, for a mesh of real devices.

    Args:
        rules: The rules.
        mesh: The names and sizes of the mesh axes.

    >>> source = code_of([PlanRule("*['w']", ((), ("model",)), 1), PlanRule("*", (), 1)], {"model": 2})
    >>> source.splitlines()[6].strip()
    '("*[\'w\']", P(None, \'model\')),'
    """
    lines = [f"    ({rule.pattern!r}, {format_spec(rule.axes)})," for rule in rules]
    sizes, names = tuple(mesh.values()), tuple(mesh)
    return _CODE.format(rules="\n".join(lines), sizes=sizes, names=names, count=len(names))


_CODE = '''\
import re

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

RULES = [  # the first pattern that fits the name of an array decides
{rules}
]


def make_mesh():
    return jax.make_mesh({sizes}, {names}, axis_types=(AxisType.Auto,) * {count})


def shardings(mesh, **arguments):
    """The shardings of arguments, in the same trees: jax.jit(step, in_shardings=tuple(shardings(...).values())).

    For a model of flax.nnx, with state = nnx.state(model):
    nnx.update(model, jax.device_put(state, shardings(mesh, model=state)["model"]))
    """

    def names(path):
        keys = [getattr(key, "key", getattr(key, "idx", getattr(key, "name", None))) for key in path]
        yield keys[0] + jax.tree_util.keystr(path[1:])
        yield keys[0] + "".join(f"[{{key}}]" if isinstance(key, int) else f".{{key}}" for key in keys[1:])  # flax.nnx

    def fits(pattern, path):
        regex = ".*".join(map(re.escape, pattern.split("*")))
        return any(re.fullmatch(regex, name, re.DOTALL) for name in names(path))

    def sharding(path, _):
        return NamedSharding(mesh, next(spec for pattern, spec in RULES if fits(pattern, path)))

    return jax.tree_util.tree_map_with_path(sharding, arguments)
'''
