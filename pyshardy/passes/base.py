"""What a pass is."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from pyshardy.core.record import Record
from pyshardy.ir.nodes import Op
from pyshardy.transforms.context import PassContext


class Anchor(Enum):
    """On what a pass runs."""

    MODULE = "module"
    FUNCTION = "func"


class Pass(Record):
    """A pass; its options are the fields of the subclass, spelled with dashes on the command line.

    Attributes:
        name: Its name on the command line.
        anchor: Whether it runs on the module or on every function.
    """

    name: ClassVar[str]
    anchor: ClassVar[Anchor] = Anchor.MODULE

    def run(self, op: Op, context: PassContext) -> None:
        """Change the module or function `op` in place.

        Raises:
            PassError: The module is not what the pass needs.
        """
        raise NotImplementedError
