"""The base class of passes."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from pyshardy.core.record import Record
from pyshardy.ir.nodes import Op
from pyshardy.transforms.context import PassContext


class Anchor(Enum):
    """The kind of op that a pass runs on."""

    MODULE = "module"
    FUNCTION = "func"


class Pass(Record):
    """A pass; its options are the fields of the subclass, spelled with dashes on the command line.

    Attributes:
        name: Its name on the command line.
        anchor: Whether it runs on the module or on every function.
        own_options: Those of its fields that the reference's pass of the same name lacks.
    """

    name: ClassVar[str]
    anchor: ClassVar[Anchor] = Anchor.MODULE
    own_options: ClassVar[frozenset[str]] = frozenset()

    def run(self, op: Op, context: PassContext) -> None:
        """Change the module or function `op` in place.

        Raises:
            PassError: The module breaks a requirement of the pass.
        """
        raise NotImplementedError
