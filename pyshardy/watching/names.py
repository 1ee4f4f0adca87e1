"""Names that frameworks do not hand to JAX, and the inputs that made JAX compile a function again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pyshardy.core.folding import fold_names
from pyshardy.frontend.jax_nnx import name_of_variable

_MOST_CHANGES = 6
_MAIN = re.compile(rb"^ *func\.func public @main\(.*$", re.MULTILINE)
_MODULE = re.compile(rb"^(module @)[\w.$]+", re.MULTILINE)
_NAMED = re.compile(rb"(loc\(\"|jax\.result_info = \")((?:[^\"\\]|\\.)*)")
_TOKEN = re.compile(rb"tensor<(?P<sizes>(?:\d+x)*)[^<>]*>|(?:loc\(|jax\.result_info = )\"(?P<name>(?:[^\"\\]|\\.)*)\"")
_ARGUMENT = re.compile(rb"(?P<before>%arg\d+: tensor<(?P<sizes>(?:\d+x)*)[^<>]*>(?:(?!%arg).)*?)loc\(unknown\)")
_ESCAPED = re.compile(r"[\\\"]")
_NONE = "none"
_ALL = "*"
"""What ends a name that stands for all that begin with it."""


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


def with_name(content: bytes, name: str) -> bytes:
    """The text of a program with this name, if it has another one and this one needs no quotes.

    >>> with_name(b"module @jit_call_torch attributes {", "jit_train_step")
    b'module @jit_train_step attributes {'
    """
    return _MODULE.sub(rb"\g<1>" + name.encode(), content, count=1) if re.fullmatch(r"[\w.$]+", name) else content


def with_names(content: bytes, names: Mapping[str, tuple[str, Sequence[int]]]) -> bytes:
    """The text of a program with names in the place of numbers, for those arguments and results whose sizes fit.

    Args:
        content: The text.
        names: For a name in the text: the name to put there, and the first sizes of the array; see `calls.Names`.

    >>> text = b'func.func public @main(%arg0: tensor<8x4xf32> loc("model.states[0][0]")) {'
    >>> with_names(text, {"model.states[0][0]": ("model.up.kernel.value", [8, 4])})
    b'func.func public @main(%arg0: tensor<8x4xf32> loc("model.up.kernel.value")) {'
    >>> other = b'func.func public @main(%arg0: tensor<8x4xf32> loc("model.states[0][1]")) {'
    >>> with_names(other, {"model.states[0][1]": ("model.up.kernel.value", [4, 8])}) == other
    True
    """
    head = _MAIN.search(content)
    if head is None:
        return content
    if "%0" in names:
        return content[: head.start()] + _with_positions(head[0], names) + content[head.end() :]
    given = {found["name"].decode(errors="replace") for found in _TOKEN.finditer(head[0]) if found["name"] is not None}
    fitting: dict[bytes, bytes] = {}
    sizes: list[bytes] = []
    for found in _TOKEN.finditer(head[0]):
        if found["name"] is None:
            sizes = found["sizes"].split(b"x")[:-1]
            continue
        name, wanted = _named(found["name"].decode(errors="replace"), names, given)
        if name and _fits(sizes, wanted):
            fitting[found["name"]] = _ESCAPED.sub(r"\\\g<0>", name).encode()
    if not fitting:
        return content
    return _NAMED.sub(lambda found: found[1] + fitting.get(found[2], found[2]), content)


def _named(
    given: str, names: Mapping[str, tuple[str, Sequence[int]]], others: Collection[str]
) -> tuple[str, Sequence[int]]:
    """The name to put in the place of one, and the first sizes of its array; empty to keep it."""
    if given in names:
        return names[given]
    for name, (new, sizes) in names.items():
        start = name.removesuffix(_ALL)
        if start != name and given.startswith(start) and not given[len(start) :][:1].isalnum():
            return new + given[len(start) :], sizes
    return name_of_variable(given, others), ()


def _with_positions(head: bytes, names: Mapping[str, tuple[str, Sequence[int]]]) -> bytes:
    """The line of the main function with names of arguments that have none, if all of them fit."""
    found = list(_ARGUMENT.finditer(head))
    sizes = [one["sizes"].split(b"x")[:-1] for one in found]
    if len(found) != len(names) or not all(_fits(one, names[f"%{place}"][1]) for place, one in enumerate(sizes)):
        return head
    quoted = iter([_ESCAPED.sub(r"\\\g<0>", names[f"%{place}"][0]) for place in range(len(found))])
    return _ARGUMENT.sub(lambda one: one["before"] + f'loc("{next(quoted)}")'.encode(), head)


def _fits(sizes: Sequence[bytes], wanted: Sequence[int]) -> bool:
    return list(sizes[: len(wanted)]) == [b"%d" % size for size in wanted]


def lost_names(names: Iterable[str]) -> tuple[str, ...]:
    """Words on inputs that have numbers in the place of names, by what frameworks are known to do.

    Args:
        names: The names of the inputs.

    >>> len(lost_names(["model.states[0][3]", "x"])), lost_names(["params['w']"])
    (1, ())
    """
    given = list(names)
    return tuple(one.word for one in _LOST if any(one.pattern.search(name) for name in given))


def changed_inputs(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Why a function was compiled again, in lines: the inputs that were not the same before.

    Args:
        before: Every input of the earlier program: its name, its shape and its sharding.
        after: The same of the later one.

    >>> before = {"w": "f32[8], replicated", "x": "f32[4]"}
    >>> print(*changed_inputs(before, before | {"w": "f32[8], P('data')"}), sep="\\n")
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
    for one in fold_names(differing):
        was, now = differing[one.members[0]][1]
        told.append(f"  {one.name}: {was} → {now}")
    more = len(told) - _MOST_CHANGES
    rest = [f"  and {more} more"] if more > 0 else []
    return (f"compiled again, because inputs {why}:", *told[:_MOST_CHANGES], *rest)


def _shape(text: str) -> str:
    return text.partition("]")[0]
