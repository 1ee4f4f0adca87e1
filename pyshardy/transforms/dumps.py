"""The text of a module in a dump, and writing it to its file."""

from __future__ import annotations

import sys
from pathlib import Path

from pyshardy.core.files import replace_file
from pyshardy.ir.nodes import Op
from pyshardy.ir.write import write_module
from pyshardy.transforms.context import PassContext


def module_text(root: Op, context: PassContext) -> str:
    """The text of a module for a dump, without locations."""
    return str(write_module(root, context.attrs).operation.get_asm()).rstrip("\n") + "\n"


def save_text(text: str, directory: str, index: int, title: str) -> None:
    """Write a dump; if that fails, write a message to standard error."""
    path = Path(directory) / f"{index:02d}.{title}.mlir"
    try:
        replace_file(path, text.encode())
    except OSError as error:
        print(f"error when writing file {path}: {error.strerror or error}", file=sys.stderr)
