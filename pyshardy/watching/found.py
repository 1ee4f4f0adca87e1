"""A program that a watched script compiled, with what is shown of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyshardy.watching.running import Compiled


@dataclass(frozen=True, slots=True)
class Found:
    """A program that is shown.

    Attributes:
        number: Its number among those that are shown, from 1.
        compiled: What the script said of it.
        version: Which program of this name it is, from 1.
        text: Its tables; empty if it could not be analysed.
        data: The same as JSON-ready data.
        error: Why it could not be analysed; empty if it could.
        page: The name of its page in the report; empty without one.
        again: Why it was compiled again, for a later program of the same name; empty for the first.
    """

    number: int
    compiled: Compiled
    version: int
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    page: str = ""
    again: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Its name, with a number if there are several of this name.

        >>> Found(3, Compiled("", "jit_step", 8, ""), 2).title
        'jit_step (2)'
        """
        return self.compiled.name + (f" ({self.version})" if self.version > 1 else "")

    def to_json(self) -> dict[str, Any]:
        """The program as JSON-ready data."""
        compiled = self.compiled
        facts = {
            "name": compiled.name, "version": self.version, "devices": compiled.devices, "platform": compiled.platform,
            "device_kind": compiled.kind, "stopped_before_it_ran": compiled.stops, "page": self.page or None,
            "compiled_again": list(self.again), "error": self.error or None,
        }  # fmt: skip
        return facts | self.data
