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
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.spec import PartitionSpec
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.report.specs import format_sharding, sharding_to_json
from pyshardy.report.summary import JSON_VERSION, mesh_to_json
from pyshardy.source.places import SourcePlace, format_place, is_library, user_place

INPUT, OUTPUT, OP = "input", "output", "op"
"""The kind of a value: an input or output of the program, or a result of an op."""
_LINE = re.compile(r"(.+?):(\d{1,18})(?::(\d{1,18}))?")
_OUTER = re.compile(r"(?:jit|pjit)\([^()]*\)/")
_BRACKETS = re.compile(r"\[\s*(['\"]?)(.*?)\1\s*\]")
_MOST_NEAR = 5
_LOOKING = "looking for values"
_NAMED = "the path of an input or output, FILE:LINE, a name scope, a function or an op"
Meshes = tuple[tuple[str, Mesh], ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """A call that led to an op.

    Attributes:
        function: The Python function; empty if unknown.
        place: File, line and column.
    """

    function: str
    place: SourcePlace


@dataclass(frozen=True, slots=True)
class ValueRow:
    """One value of a program.

    Attributes:
        name: The name of an input or output. For other values, the scopes and name that JAX gave the op, such as
            "attention/dot_general", or the op.
        kind: "input", "output" or "op".
        op: The op that computes it, such as "stablehlo.dot_general"; None for an input.
        frames: The calls that led to the op, innermost first.
        shape: Its global shape.
        dtype: Element type, such as "f32".
        sharding: Its sharding; None if it has none.
        local_shape: The shape of a shard.
        bytes_total: The bytes of the global tensor.
        bytes_per_device: The bytes of a shard.
        is_given: Whether the user annotated this value itself.
        origins: The other annotations that its axes come from: names of inputs and outputs, lines of constraints.
    """

    name: str
    kind: str
    op: str | None
    frames: tuple[Frame, ...]
    shape: tuple[int, ...]
    dtype: str
    sharding: TensorSharding | None
    local_shape: tuple[int, ...]
    bytes_total: int
    bytes_per_device: int
    is_given: bool
    origins: tuple[str, ...] = ()

    @property
    def spec(self) -> PartitionSpec | None:
        """The sharding as a `pyshardy.PartitionSpec`; None if there is none."""
        return None if self.sharding is None else PartitionSpec.of(self.sharding)

    @property
    def is_split(self) -> bool:
        """Whether any dimension is sharded."""
        return self.sharding is not None and not self.sharding.is_fully_replicated

    @property
    def is_inferred(self) -> bool:
        """Whether propagation gave the sharding."""
        return self.is_split and not self.is_given

    @property
    def given_by(self) -> str:
        """The origin of the sharding: "user", "propagation", or none."""
        if self.is_inferred:
            return "propagation"
        return "user" if self.sharding is not None and (self.is_split or self.sharding.unreduced) else ""

    @property
    def place(self) -> SourcePlace | None:
        """File, line and column in the user's own code; in a library if there is none."""
        return user_place([frame.place for frame in self.frames])

    def __str__(self) -> str:
        shape = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        return f"{self.name}: {shape} {format_sharding(self.sharding)}"

    def to_json(self) -> dict[str, Any]:
        """The row as JSON-ready data."""
        place = self.place
        return {
            "name": self.name,
            "kind": self.kind,
            "op": self.op,
            "source": None if place is None else {"file": place[0], "line": place[1], "column": place[2]},
            "shape": list(self.shape),
            "dtype": self.dtype,
            **sharding_to_json(self.sharding),
            "local_shape": list(self.local_shape),
            "bytes_total": self.bytes_total,
            "bytes_per_device": self.bytes_per_device,
            "given_by": self.given_by or None,
            "origins": list(self.origins),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Values(Sequence[ValueRow]):
    """The values of a program in order: inputs, results of ops, outputs.

    Indexing by a number gives one value, by a text all matching values: `values["attention*"]`. `print` shows a table.

    Attributes:
        title: The title of the program.
        meshes: Name and mesh of every mesh with axes.
        rows: The values.
    """

    title: str
    meshes: Meshes
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
        fits = Matcher(pattern)
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

    def __str__(self) -> str:
        from pyshardy.report.printing import printed
        from pyshardy.report.value_tables import value_tables

        return printed(value_tables(self))

    def __repr__(self) -> str:
        return f"<Values of {self.title}: {len(self)}>"

    def _repr_html_(self) -> str:
        from pyshardy.report.printing import html
        from pyshardy.report.value_tables import value_tables

        return html(value_tables(self))


def short_scope(scope: str | None) -> str | None:
    """The name of an op without the jitted functions around all ops.

    >>> short_scope("jit(step)/jit(main)/attention/dot_general")
    'attention/dot_general'
    """
    found = _OUTER.match(scope or "")
    while scope and found:
        scope = scope[found.end() :]
        found = _OUTER.match(scope)
    return scope or None


# Names


class Matcher:
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
