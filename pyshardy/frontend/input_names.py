"""The names of inputs and outputs that a pattern of a user names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from pyshardy.core.folding import fold_names
from pyshardy.errors import UsageError

_DOING = "annotating a module"
_PART = re.compile(r"\[\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^\]]*))\s*\]|([^.\[\]]+)")
_VARIABLE = re.compile(r"\*|(?<!\d)\d{1,9}(?:,\d{1,9})?\.\.\d{1,9}(?!\d)")
_LAST = 2
_MOST_LAYERS = 100_000
_MOST_NAMES = 8


def matching_names(pattern: str, names: Sequence[str]) -> list[int]:
    """The positions of the names that match a pattern.

    Raises:
        UsageError: There is none; the error lists the nearest names.

    >>> matching_names("params['layers'][*]['w']", ["params['layers'][0]['w']", "params['layers'][0]['b']", "x"])
    [0]
    >>> matching_names("params.*.w", ["params['layers'][0]['w']", "params['layers'][0]['b']", "x"])
    [0]
    >>> matching_names("net[2,4..6].w", [f"net[{layer}].w" for layer in range(8)])
    [2, 4, 6]
    """
    matcher, pieces = _matcher(pattern), [piece for text, _ in _parts(pattern) for piece in _VARIABLE.split(text)]
    near = [position for position, name in enumerate(names) if all(piece in name for piece in pieces)]
    found = [position for position in near if matcher.match(_path(names[position]))]
    if found:
        return found
    folded = [found.name for found in fold_names((name, None) for name in names)]
    nearest = get_close_matches(pattern, folded, n=3, cutoff=0.3) or folded[:_MOST_NAMES]
    raise UsageError(
        _DOING,
        got=f"{pattern!r}, which matches no input or output",
        needed=f"one of {', '.join(nearest)}" if nearest else "a module with inputs or outputs",
        hint="`pyshardy show` prints all names; unused arguments are not among them",
    )


def names_inside(pattern: str, names: Sequence[str]) -> list[int]:
    """The positions of the names that inputs of a pattern have, or that stand for a tree that they are in.

    Args:
        pattern: The name of a group of inputs, in which `*` stands for a number.
        names: Names.

    >>> names_inside("state['layers'][*]['w'].value", ["state.layers.0.w", "state.layers.0", "state.layers.0.b"])
    [0, 1]
    """
    wanted = [re.compile(r"\d+".join(map(re.escape, text.split("*")))) for text, _ in _parts(pattern)]
    found = []
    for position, name in enumerate(names):
        keys = _parts(name)
        if len(keys) <= len(wanted) and all(part.fullmatch(key) for part, (key, _) in zip(wanted, keys)):
            found.append(position)
    return found


def path_within(name: str, keys: int = 1) -> str:
    """The path within an argument, or within a result that has some keys; "" for one that is no tree.

    >>> path_within("state.params['w']") == path_within("result[0].params['w']", keys=2), path_within("batch")
    (True, '')
    """
    return "\0".join(text for text, _ in _parts(name)[keys:])


def _parts(name: str) -> list[tuple[str, bool]]:
    """The keys and attributes along a path, and whether each is in brackets without quotes."""
    found = []
    for match in _PART.finditer(name):
        single, double, bare, plain = match.groups()
        text = next(part for part in (single, double, bare, plain) if part is not None)
        found.append((text if bare is None else bare.strip(), bare is not None))
    return found


def _path(name: str) -> str:
    return "".join(f"{text}\0" for text, _ in _parts(name))


def _matcher(pattern: str) -> re.Pattern[str]:
    parts = []
    for text, is_bare in _parts(pattern):
        fixed = [*map(re.escape, _VARIABLE.split(text)), ""]
        between = ["[^\0]*" if is_bare and text == "*" else _variable(found) for found in _VARIABLE.findall(text)]
        parts += [part for pair in zip(fixed, [*between, ""]) for part in pair] + ["\0"]
    return re.compile("".join(parts), re.DOTALL)


def _variable(found: str) -> str:
    """What `*` in a name stands for, or the numbers of layers, `0..23` or `2,8..140`, as tables write them."""
    if found == "*":
        return ".*"
    numbers = [int(number) for number in re.split(r",|\.\.", found)]
    first, last, step = numbers[0], numbers[-1], max(1, numbers[1] - numbers[0]) if len(numbers) > _LAST else 1
    run = range(first, min(last, first + _MOST_LAYERS) + 1, step)
    return f"(?:{'|'.join(map(str, run))}|{re.escape(found)})"
