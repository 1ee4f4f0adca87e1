"""`sdy-save-module`: writes the module to a file.

Source: docs/semantics/export.md#sdy-save-module
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyshardy.core.record import Record
from pyshardy.ir.nodes import Op
from pyshardy.ir.write import write_module
from pyshardy.passes.base import Pass
from pyshardy.report.files import replace_file
from pyshardy.transforms.context import PassContext


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


def module_text(root: Op, context: PassContext) -> str:
    """The text of the module in a dump: without locations."""
    return str(write_module(root, context.attrs).operation.get_asm()).rstrip("\n") + "\n"


def save_text(text: str, directory: str, index: int, title: str) -> None:
    """Write a dump; report a failure on standard error."""
    path = Path(directory) / f"{index:02d}.{title}.mlir"
    try:
        replace_file(path, text.encode())
    except OSError as error:
        print(f"error when writing file {path}: {error.strerror or error}", file=sys.stderr)
