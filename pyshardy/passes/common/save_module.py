"""`sdy-save-module`: writes the module to a file on the way.

Source: docs/semantics/export.md#sdy-save-module
"""

from __future__ import annotations

from pyshardy.core.record import Record
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.dumps import module_text, save_text


class Dump(Record):
    """A place in a pipeline at which the module is written, if the pipeline has a folder for that.

    Attributes:
        title: What to call the module there.
    """

    title: str


class SaveModule(Pass):
    """Write the module to `{directory}/{index}.{title}.mlir`; pipelines have it, text cannot ask for it.

    The folder must be there, and a file of this name is overwritten. If the file cannot be written, standard error
    says so, and nothing else happens.

    Attributes:
        directory: The folder.
        index: How many dumps of the pipeline come before.
        title: What to call the module.
    """

    directory: str
    index: int
    title: str

    name = "sdy-save-module"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        save_text(module_text(op, context), self.directory, self.index, self.title)
