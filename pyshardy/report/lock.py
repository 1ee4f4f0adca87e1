"""The lock of a program: what is to be reviewed when it changes, as plain data and as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from os import PathLike
from typing import Any, TypeVar

from pyshardy.core.files import write_whole
from pyshardy.core.folding import fold_names, unfold
from pyshardy.core.plain_data import check_fields
from pyshardy.core.text import format_bytes
from pyshardy.errors import UsageError
from pyshardy.report.budgets import Budgets

LOCK_VERSION = 1
"""The version of the format. It grows when a key is removed or changes its meaning."""
_DOING, _MAKING = "reading a lock", "making a lock"
_HEAD = (
    "# How this program is sharded, and what its devices send. `pyshardy check PROGRAM THIS_FILE` compares,\n"
    "# `pyshardy lock PROGRAM -o THIS_FILE` writes it again and keeps [budgets].\n"
)
_DIGITS = re.compile(r"(\d+)")
_DELETE = "\x7f"
"""The one character that JSON leaves as it is in texts, and TOML escapes."""


class _Checked:
    """A record whose fields have the types that they are declared with."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self, _MAKING)


@dataclass(frozen=True, slots=True)
class LockedMesh(_Checked):
    """A mesh: its name, its axes as "data=4, model=2", and the order of its devices if that is not the natural one."""

    name: str
    axes: str
    device_order: str = ""


@dataclass(frozen=True, slots=True)
class LockedTensor(_Checked):
    """An input or output, or several that differ only in a number, such as that of their layer.

    Attributes:
        name: The name; a folded one for several.
        tensor: Element type and global shape, such as "f32[64, 256]".
        sharding: The sharding, such as "P(None, 'model')".
        layers: The number of tensors.
        donated: Whether a result takes its memory.
        annotated: Whether the user gave the sharding. Tensors that differ in this alone are equal.
    """

    name: str
    tensor: str
    sharding: str
    layers: int = 1
    donated: bool = False
    annotated: bool = False


@dataclass(frozen=True, slots=True)
class LockedConstraint(_Checked):
    """Sharding constraints of the program.

    Attributes:
        where: The scope, or else the function or file; a folded one for several layers.
        tensor: Element type and global shape.
        sharding: The sharding.
        count: How many there are in all layers.
        layers: The number of scopes.
    """

    where: str
    tensor: str
    sharding: str
    count: int = 1
    layers: int = 1


@dataclass(frozen=True, slots=True)
class LockedTypes(_Checked):
    """The types that ops of a scope compute, without booleans and plain integers; the rest is as in constraints."""

    where: str
    types: str
    layers: int = 1


@dataclass(frozen=True, slots=True)
class LockedCollective(_Checked):
    """Equal collectives; `where` and `layers` as in constraints.

    Attributes:
        kind: The kind, such as "all_gather".
        along: The mesh axes.
        where: The scope, or else the function or file.
        because: What needs it, such as "sum of dot_general".
        tensor: Element type and shape on one device.
        count: The number of runs in all layers.
        bytes: The bytes that a device sends for all of them.
        layers: The number of scopes.
        per_round: Whether a loop with an unknown number of rounds runs them; the figures are then those of one round.
        if_taken: Whether they are in a branch that is not counted.
    """

    kind: str
    along: str
    where: str
    because: str
    tensor: str
    count: int
    bytes: int
    layers: int = 1
    per_round: bool = False
    if_taken: bool = False


@dataclass(frozen=True, slots=True)
class LockedReplication(_Checked):
    """Tensors that the compiler gathers whole; `where` and `layers` as in constraints.

    Attributes:
        what: The op that makes it, or the input.
        where: The scope, or else the file.
        tensor: Element type and global shape.
        before: The sharding that it has.
        after: The sharding that it gets.
        bytes: The bytes of all whole tensors.
        count: The number of tensors.
        layers: The number of scopes.
    """

    what: str
    where: str
    tensor: str
    before: str
    after: str
    bytes: int
    count: int = 1
    layers: int = 1


@dataclass(frozen=True, slots=True)
class LockedMemory(_Checked):
    """The bytes of one category at the peak, such as "activations"."""

    what: str
    bytes: int


LockedRow = TypeVar("LockedRow", LockedTensor, LockedConstraint, LockedTypes, LockedCollective, LockedReplication)
_NUMBERS = ("count", "bytes")
"""The figures of a row, which are those of all its layers together."""


@dataclass(frozen=True, slots=True)
class Lock(_Checked):
    """The shardings of a program, what its devices send and hold, and what said so.

    Lists are sorted; what is alike in several layers is one row. `text` is the file, `load_lock` reads it.

    Attributes:
        version: The version of the format.
        program: The title of the program.
        pyshardy: The version of pyshardy.
        jaxlib: The version of jaxlib.
        compiler: The name of the compiler that was asked, such as "tpu:v5e:2x4"; "none" for none.
        compiled_by: That compiler with its version.
        chip: The chip that the peak memory is estimated for.
        covers: "all", or "inputs" where nothing else is known.
        input_bytes: The bytes of inputs on one device.
        output_bytes: The bytes of outputs on one device.
        sent_bytes: The bytes that a device sends per run.
        peak_bytes: The estimated peak memory of a device.
        memory: The peak by categories.
        meshes: The meshes.
        constraints: The sharding constraints of the program.
        inputs: The inputs.
        outputs: The outputs.
        types: The types that ops compute, by scope.
        collectives: The collectives.
        replications: The tensors that the compiler gathers whole.
        budgets: What the program may take.
    """

    version: int
    program: str
    pyshardy: str
    jaxlib: str
    compiler: str = "none"
    compiled_by: str = ""
    chip: str = ""
    covers: str = "all"
    input_bytes: int = 0
    output_bytes: int = 0
    sent_bytes: int = 0
    peak_bytes: int = 0
    memory: tuple[LockedMemory, ...] = ()
    meshes: tuple[LockedMesh, ...] = ()
    constraints: tuple[LockedConstraint, ...] = ()
    inputs: tuple[LockedTensor, ...] = ()
    outputs: tuple[LockedTensor, ...] = ()
    types: tuple[LockedTypes, ...] = ()
    collectives: tuple[LockedCollective, ...] = ()
    replications: tuple[LockedReplication, ...] = ()
    budgets: Budgets = Budgets()

    def __post_init__(self) -> None:
        check_fields(self, _MAKING)
        for rows in (self.constraints, self.inputs, self.outputs, self.types, self.collectives, self.replications):
            _ = unfolded(rows)  # raises an error if a name is not folded as its row says

    def text(self) -> str:
        """The lock as TOML; equal locks have equal texts."""
        lines = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "budgets" or (field.name == "covers" and value == "all"):
                continue
            if isinstance(value, tuple):
                rows = "".join(f"  {_toml(row)},\n" for row in value)
                lines.append(f"{field.name} = [\n{rows}]" if rows else f"{field.name} = []")
            else:
                size = f"  # {format_bytes(value)}" if field.name.endswith("_bytes") else ""
                lines.append(f"{field.name} = {_toml(value)}{size}")
        given = _entries(self.budgets)
        lines += ["", "[budgets]", *(f"{name} = {_toml(value)}" for name, value in given)] if given else []
        return _HEAD + "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The lock as JSON-ready data; the keys are the names of the attributes."""
        return asdict(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the lock to a file.

        Raises:
            UsageError: The file cannot be written.
        """
        write_whole(path, self.text().encode(errors="replace"))

    def __str__(self) -> str:
        return self.text()


# Rows of layers


def folded(rows: Iterable[LockedRow]) -> tuple[LockedRow, ...]:
    """Rows with those that differ only in a number of their name folded into one, sorted.

    >>> folded(LockedTensor(f"w[{layer}]", "f32[8]", "P('x')") for layer in range(3))
    (LockedTensor(name='w[0..2]', tensor='f32[8]', sharding="P('x')", layers=3, donated=False, annotated=False),)
    """
    given = list(rows)
    found = []
    for name, members in fold_names((_name(row), _rest(row)) for row in given):
        first, layers = given[members[0]], len(members)
        numbers: dict[str, Any] = {one: layers * getattr(first, one) for one in _NUMBERS if hasattr(first, one)}
        found.append(replace(first, **numbers | {_key(first): name, "layers": layers}))
    return tuple(sorted(found, key=_order))


def unfolded(rows: Iterable[LockedRow]) -> list[LockedRow]:
    """The rows of single layers.

    Raises:
        UsageError: A name does not stand for as many layers as its row says.
    """
    found = []
    for row in rows:
        names = unfold(_name(row), row.layers)
        numbers = {one: getattr(row, one) for one in _NUMBERS if hasattr(row, one)}
        if not names or any(number % row.layers for number in numbers.values()):
            needed = "a name that stands for as many, and figures that these share"
            raise UsageError(_MAKING, got=f"{_name(row)!r} for {row.layers} layers", needed=needed)
        share: dict[str, Any] = {"layers": 1} | {one: number // row.layers for one, number in numbers.items()}
        found += [replace(row, **share | {_key(row): name}) for name in names]
    return found


def _key(row: Any) -> str:
    return "name" if hasattr(row, "name") else "where"


def _name(row: Any) -> str:
    name: str = getattr(row, _key(row))
    return name


def _rest(row: Any) -> Hashable:
    rest: Hashable = replace(row, **{_key(row): ""})
    return rest


def _order(row: Any) -> list[list[tuple[int, int, str]]]:
    """The fields of a row as a key that sorts numbers in texts by their size."""
    return [
        [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(str(value))]
        for value in (getattr(row, field.name) for field in fields(row))
    ]


# TOML


def _entries(value: Any) -> list[tuple[str, Any]]:
    """The fields of a record without those that have their default."""
    found = ((field.name, getattr(value, field.name), field.default) for field in fields(value))
    return [(name, given) for name, given, default in found if default is MISSING or given != default]


def _toml(value: Any) -> str:
    if is_dataclass(value):
        return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in _entries(value)) + " }"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, int):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace(_DELETE, "\\u007f")
