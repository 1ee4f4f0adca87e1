"""Names that frameworks do not hand to JAX, and the inputs that made JAX compile a function again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyshardy.report.folding import fold

_MOST_CHANGES = 6
_NONE = "none"


class _Lost(NamedTuple):
    """Numbers in the place of names: how they look, and what is to be done."""

    pattern: re.Pattern[str]
    word: str


_LOST = (
    _Lost(
        re.compile(r"\.states\[\d+\]\[\d+\]"),
        "nnx.jit hands the arrays of a model to JAX by number (states[0][3]); nnx.jit(..., graph=False) keeps their "
        "names, and so does pyshardy.load(step, model, ...) in the script",
    ),
    _Lost(
        re.compile(r"^dynamic_\w+\['(?:first|rest)'\]"),
        "eqx.filter_jit hands the arrays of its arguments to JAX by number, in the order of jax.tree.leaves: "
        "['first'] are those of the first argument; pyshardy.load(step, model, ...) in the script keeps their names",
    ),
    _Lost(
        re.compile(r"^state\[[0-3]\]\[\d+\]$"),
        "keras hands its variables to JAX by number: state[0] are model.trainable_variables, state[1] the "
        "non-trainable ones, state[2] model.optimizer.variables and state[3] those of metrics; "
        "model.trainable_variables[3].path is a name",
    ),
)


def lost_names(names: Iterable[str]) -> tuple[str, ...]:
    """Words on inputs that have numbers in the place of names, by what frameworks are known to do.

    Args:
        names: The names of the inputs.

    >>> len(lost_names(["model.states[0][3]", "x"])), lost_names(["params['w']"])
    (1, ())
    """
    given = list(names)
    return tuple(one.word for one in _LOST if any(one.pattern.search(name) for name in given))


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Why a function was compiled again, in lines: the inputs that were not the same before.

    Args:
        before: Every input of the earlier program: its name, its shape and its sharding.
        after: The same of the later one.

    >>> for line in changes({"w": "f32[8], replicated", "x": "f32[4]"}, {"w": "f32[8], P('data')", "x": "f32[4]"}):
    ...     print(line)
    compiled again, because inputs are sharded otherwise; out_shardings of what returns them avoid that:
      w: f32[8], replicated → f32[8], P('data')
    """
    differing = [(name, (before.get(name, _NONE), text)) for name, text in after.items() if before.get(name) != text]
    differing += [(name, (text, _NONE)) for name, text in before.items() if name not in after]
    if not differing:
        return ("compiled again, although its inputs have the same shapes and shardings: its code or options differ",)
    are_shapes_equal = all(_shape(was) == _shape(now) for _, (was, now) in differing)
    why = "are sharded otherwise; out_shardings of what returns them avoid that" if are_shapes_equal else "differ"
    told = []
    for one in fold(differing):
        was, now = differing[one.members[0]][1]
        told.append(f"  {one.name}: {was} → {now}")
    more = len(told) - _MOST_CHANGES
    rest = [f"  and {more} more"] if more > 0 else []
    return (f"compiled again, because inputs {why}:", *told[:_MOST_CHANGES], *rest)


def _shape(text: str) -> str:
    return text.partition("]")[0]
