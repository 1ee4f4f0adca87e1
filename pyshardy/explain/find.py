"""Finds values by the path of an argument, by a line, by a scope or by an op."""

from __future__ import annotations

import re
from difflib import get_close_matches
from math import prod
from pathlib import PurePath

from pyshardy.core.scopes import scope_path
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.explain.names import Names, named_scope, short_label
from pyshardy.explain.subject import Label, Subject
from pyshardy.rules.properties import EDGE
from pyshardy.source.cells import cell_name, file_name

_LINE = re.compile(r"(.+?):(\d{1,18})(?::(\d{1,18}))?")
_DOING = "looking for a value to explain"
_NEEDED = "an argument, a result, FILE:LINE, a name scope or an op of the program"


def find_values(subject: Subject, wanted: str) -> list[int]:
    """The values that a text names: one argument or result, or the results of all ops of a line, scope or name.

    Of a line, those with most elements come first.

    Args:
        subject: The program.
        wanted: A path such as `params['w2']`, `model.py:41`, `mlp`, `jit(f)/mlp/dot_general` or `dot_general`.

    Raises:
        UsageError: Nothing has that name; the error lists the nearest names.
    """
    if not isinstance(wanted, str):
        raise UsageError(_DOING, got=named_type(wanted), needed=_NEEDED)
    by_name = {name: value for value, name in reversed(list(subject.names.items()))}
    if wanted in by_name:
        return [by_name[wanted]]
    line = _LINE.fullmatch(wanted)
    found = [
        value
        for op, label in enumerate(_labels(subject))
        if label is not None and (_is_at(label, line) if line else _is_named(label, wanted))
        for value in subject.program.results[op]
        if subject.program.shapes[value] is not None
    ]
    if found:
        return sorted(found, key=lambda value: -prod(subject.program.shapes[value] or ())) if line else found
    raise UsageError(_DOING, got=f"'{wanted}'", needed=_NEEDED, hint=", ".join(nearest(subject, wanted)) or None)


def nearest(subject: Subject, wanted: str) -> list[str]:
    """The names of the program that are most similar to a text, the best first; some names if none is similar."""
    known = list(dict.fromkeys(subject.names.values()))
    for label in _labels(subject):
        if label is not None:
            scopes = scope_path(label.scope), named_scope(label), short_label(label)
            known += [name for name in (_line(label), *scopes) if name]
    known = list(dict.fromkeys(known))
    close = get_close_matches(wanted, known, n=5, cutoff=0.5)
    inside = [name for name in known if wanted.lower() in name.lower()]
    return list(dict.fromkeys([*inside, *close]))[:5] or known[:5]


def _labels(subject: Subject) -> list[Label | None]:
    """The labels of the remaining ops that belong to the user's program."""
    names = Names(subject)
    hidden = (EDGE, "func.func", "func.return", "sdy.constant", "stablehlo.constant", "sdy.mesh")
    return [
        None if op in subject.erased or subject.program.kind(op).name in hidden else names.label(op)
        for op in range(subject.op_count)
    ]


def _line(label: Label) -> str | None:
    return None if label.file is None else f"{file_name(label.file)}:{label.line}"


def _is_at(label: Label, line: re.Match[str]) -> bool:
    return any(file is not None and _is_place(file, at, column, line) for file, at, column in label.places)


def _is_place(file: str, at: int, column: int, line: re.Match[str]) -> bool:
    if at != int(line[2]) or (line[3] is not None and column != int(line[3])):
        return False
    wanted = PurePath(line[1]).parts
    if cell_name(file) is not None:
        return cell_name(file) == line[1]
    return PurePath(file).parts[-len(wanted) :] == wanted


def _is_named(label: Label, wanted: str) -> bool:
    own = (
        label.scope,
        short_label(label),
        label.name,
        label.name.rpartition(".")[2],
        named_scope(label),
        label.function,
    )
    if wanted in own:
        return True
    return "/" in wanted and any(f"/{wanted}/" in f"/{scope}/" for scope in (label.scope, scope_path(label.scope)))
