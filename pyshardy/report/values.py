"""The values of a program, to look up by name, line, scope or op."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import PurePath
from typing import Any, overload

from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import Mesh
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.report.printing import DEFAULTS, Page, Printable, TableOptions
from pyshardy.report.summary import JSON_VERSION, mesh_to_json
from pyshardy.report.value_row import OP, Frame, ValueRow
from pyshardy.report.value_tables import value_tables
from pyshardy.source.places import format_place, is_library

"""The kind of a value: an input or output of the program, or a result of an op."""
_LINE = re.compile(r"(.+?):(\d{1,18})(?::(\d{1,18}))?")
_BRACKETS = re.compile(r"\[\s*(['\"]?)(.*?)\1\s*\]")
_MOST_NEAR = 5
_LOOKING = "looking for values"
_NAMED = "the path of an input or output, FILE:LINE, a name scope, a function or an op"
NamedMeshes = tuple[tuple[str, Mesh], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Values(Printable, Sequence[ValueRow]):
    """The values of a program in order: inputs, results of ops, outputs.

    Indexing by a number gives one value, by a text all matching values: `values["attention*"]`. `print` shows a table.

    Attributes:
        title: The title of the program.
        meshes: Name and mesh of every mesh with axes.
        rows: The values.
    """

    title: str
    meshes: NamedMeshes
    rows: tuple[ValueRow, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ValueRow]:
        return iter(self.rows)

    @overload
    def __getitem__(self, which: int) -> ValueRow: ...
    @overload
    def __getitem__(self, which: slice | str) -> Values: ...
    def __getitem__(self, which: int | slice | str) -> ValueRow | Values:
        if isinstance(which, str):
            return self.named(which)
        try:
            found = self.rows[which]
        except TypeError as error:
            raise UsageError(_LOOKING, got=named_type(which), needed=f"a position, or {_NAMED}") from error
        return found if isinstance(found, ValueRow) else replace(self, rows=found)

    def named(self, pattern: str) -> Values:
        """The values that match a text.

        Args:
            pattern: The path of inputs or outputs, `FILE:LINE` for values computed in that line or in calls from it, a
                name scope, a function or an op. `*` stands for any text.

        Raises:
            UsageError: Nothing has that name; the error lists the nearest names.
        """
        if not isinstance(pattern, str):
            raise UsageError(_LOOKING, got=named_type(pattern), needed=_NAMED)
        fits = ValuePattern(pattern)
        found = tuple(row for row in self.rows if fits(row))
        if found:
            return replace(self, rows=found)
        near = self._nearest(pattern)
        raise UsageError(_LOOKING, got=f"'{pattern}'", needed=_NAMED, hint=", ".join(near) if near else None)

    def _nearest(self, pattern: str) -> list[str]:
        known: dict[str, None] = {}
        for row in self.rows:
            known[row.name] = None
            known |= dict.fromkeys(filter(None, re.split("[/()]+", row.name)) if row.kind == OP else ())
            for frame in row.frames:
                if not is_library(frame.place[0]):
                    known |= {format_place(frame.place, only_name=True): None, frame.function: None}
        pattern = pattern.replace("*", "")
        bare = pattern.lower()
        inside = [name for name in known if bare and bare in name.lower()]
        close = get_close_matches(pattern, list(known), n=_MOST_NEAR, cutoff=0.5)
        return list(dict.fromkeys([*inside, *close]))[:_MOST_NEAR] or list(known)[:_MOST_NEAR]

    def to_json(self) -> dict[str, Any]:
        """The values as JSON-ready data."""
        return {
            "version": JSON_VERSION,
            "title": self.title,
            "meshes": [{"name": name, **mesh_to_json(mesh)} for name, mesh in self.meshes],
            "values": [row.to_json() for row in self.rows],
        }

    def tables(self, options: TableOptions = DEFAULTS) -> Page:
        """The values as a table, for a `rich` console.

        Args:
            options: The display options; `unfold` for one row per value.
        """
        return value_tables(self.title, self.rows, options)

    def __repr__(self) -> str:
        return f"<Values of {self.title}: {len(self)}>"


# Names


class ValuePattern:
    """Whether a pattern names a value.

    Args:
        pattern: As for `Values.named`.
    """

    def __init__(self, pattern: str) -> None:
        line = _LINE.fullmatch(pattern)
        self._line = None if line is None else (int(line[2]), None if line[3] is None else int(line[3]))
        self._file = None if line is None else _glob(line[1])
        self._whole = _glob(pattern)
        self._path = _glob(_dotted(pattern))
        self._scope = re.compile(f"(?:^|[/(])(?:{self._whole.pattern})(?:[/)]|$)", re.DOTALL)  # jvp(mlp)/tanh

    def __call__(self, row: ValueRow) -> bool:
        """Whether it matches."""
        if self._file is not None and any(map(self._is_at, row.frames)):
            return True
        if row.kind != OP:
            return self._is_path(row.name) or (row.op is not None and self._is_computed(row))
        return self._is_computed(row)

    def _is_computed(self, row: ValueRow) -> bool:
        assert row.op is not None
        if row.kind == OP and self._scope.search(row.name):
            return True
        names = (row.op, row.op.rpartition(".")[2], *(frame.function for frame in row.frames))
        return any(map(self._whole.fullmatch, names))

    def _is_path(self, name: str) -> bool:
        """Whether the pattern is the path of the value or of something around it."""
        if self._whole.fullmatch(name):
            return True
        parts = _dotted(name).split(".")
        return any(self._path.fullmatch(".".join(parts[:count])) for count in range(len(parts), 0, -1))

    def _is_at(self, frame: Frame) -> bool:
        assert self._line is not None and self._file is not None
        file, line, column = frame.place
        if line != self._line[0] or self._line[1] not in (None, column):
            return False
        parts = PurePath(file).parts
        return any(self._file.fullmatch(str(PurePath(*parts[at:]))) for at in range(len(parts)))


@lru_cache(maxsize=1 << 14)
def _dotted(name: str) -> str:
    """A path with a dot before every key.

    >>> _dotted("params['layers'][0]['w1']")
    'params.layers.0.w1'
    """
    return _BRACKETS.sub(r".\2", name)


register_cache(_dotted.cache_clear)


def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
