"""`sdy-save-module`: writes the module to a file.

Source: docs/semantics/export.md#sdy-save-module
"""

from __future__ import annotations

from pyshardy.core.record import Record
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.dumps import module_text, save_text


class Dump(Record):
    """A point in a pipeline where the module is written, if the pipeline has a directory for dumps.

    Attributes:
        title: The name of the module there.
    """

    title: str


class SaveModule(Pass):
    """Write the module to `{directory}/{index}.{title}.mlir`; only pipelines can contain it, not pipeline text.

    The directory must exist, and a file of this name is overwritten. If the file cannot be written, the pass says so
    on standard error and does nothing else.

    Attributes:
        directory: The directory.
        index: The number of earlier dumps of the pipeline.
        title: The name of the module.
    """

    directory: str
    index: int
    title: str

    name = "sdy-save-module"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        save_text(module_text(op, context), self.directory, self.index, self.title)
