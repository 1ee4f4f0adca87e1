"""Warnings and errors that point at an op, collected while passes run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pyshardy.core.options import enum_value
from pyshardy.core.record import Record
from pyshardy.core.text import named_type
from pyshardy.errors import InvalidModuleError, UsageError
from pyshardy.ir.locations import format_location
from pyshardy.ir.nodes import Op

_DOING = "making a diagnostic"


class Severity(Enum):
    """The severity of a diagnostic."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"
    NOTE = "note"


class Diagnostic(Record):
    """One message about one place.

    Attributes:
        severity: How severe it is, also by name: "warning".
        message: The text.
        location: The MLIR location, or None.
        notes: Further places that belong to it.

    Raises:
        UsageError: The severity is unknown, the message is not text, or the notes are not diagnostics.
    """

    severity: Severity
    message: str
    location: Any = None
    notes: tuple[Diagnostic, ...] = ()

    def __post_init__(self) -> None:
        if type(self.severity) is not Severity:
            object.__setattr__(self, "severity", enum_value(Severity, self.severity, _DOING, "the severity "))
        if not isinstance(self.message, str):
            raise UsageError(_DOING, got=f"{named_type(self.message)} as the message", needed="text")
        if not isinstance(self.notes, tuple) or not all(isinstance(note, Diagnostic) for note in self.notes):
            raise UsageError(_DOING, got=f"{self.notes!r} as the notes", needed="a tuple of diagnostics")

    def __str__(self) -> str:
        return f"{format_location(self.location)}: {self.severity.value}: {self.message}"


@dataclass(slots=True)
class Diagnostics:
    """A list of messages that grows while passes run."""

    messages: list[Diagnostic] = field(default_factory=list)

    def warn(self, op: Op, message: str) -> None:
        """Report something that the user should know and that is not an error."""
        self.messages.append(Diagnostic(Severity.WARNING, message, op.location))


class PassError(InvalidModuleError):
    """A pass cannot go on; carries the diagnostic at the op.

    Args:
        op: The op at fault.
        message: What is wrong with it.
        notes: Pairs of op and message for further places.
    """

    def __init__(self, op: Op, message: str, notes: Sequence[tuple[Op, str]] = ()) -> None:
        self.diagnostic = Diagnostic(
            Severity.ERROR,
            f"'{op.name}' op {message}",
            op.location,
            tuple(Diagnostic(Severity.NOTE, text, other.location) for other, text in notes),
        )
        super().__init__(self.diagnostic.message, where=format_location(op.location))
        self.diagnostics = (self.diagnostic,)


@contextmanager
def errors_of(context: Any) -> Iterator[list[Diagnostic]]:
    """The errors that MLIR reports inside the block, without notes that only print the op again.

    MLIR's own exceptions contain them too, but end the process if a message is not UTF-8.
    """
    found: list[Diagnostic] = []

    def note(diagnostic: Any) -> bool:
        if diagnostic.severity.name != Severity.ERROR.name:
            return False
        found.append(_from_mlir(diagnostic))
        return True

    before = context.emit_error_diagnostics
    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(note)
    try:
        yield found
    finally:
        handler.detach()
        context.emit_error_diagnostics = before


def _from_mlir(diagnostic: Any) -> Diagnostic:
    notes = tuple(note for note in map(_from_mlir, diagnostic.notes) if "see current operation" not in note.message)
    return Diagnostic(Severity[diagnostic.severity.name], _message(diagnostic), diagnostic.location, notes)


def _message(diagnostic: Any) -> str:
    try:
        return str(diagnostic.message).strip()
    except RuntimeError:
        return "something with a name that is not UTF-8"
