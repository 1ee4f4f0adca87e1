"""The programs that are timed: modules as MLIR bytecode, by name."""

from __future__ import annotations

import sys
from functools import cache
from io import BytesIO
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


@cache
def transformer(layers: int) -> bytes:
    """The example training step with this many layers, width 512."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    import transformer as example

    stream = BytesIO()
    module = example.lower(example.Config(layers=layers)).compiler_ir("stablehlo")
    module.operation.write_bytecode(stream)
    return stream.getvalue()
