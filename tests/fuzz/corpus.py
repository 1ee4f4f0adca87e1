"""The programs that are mutated: inputs of file-checks with their flags, examples, HLO."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pyshardy.errors import ShardyError
from pyshardy.frontend.from_text import load_bytes
from pyshardy.ir.dialects import stablehlo

ROOT = Path(__file__).parents[2]
_RUN = re.compile(r"^// RUN: (?:not )?sdy_opt %s (.*?)(?: 2>&1)?(?: [|>].*)?$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*//.*\n?", re.MULTILINE)
_SEPARATOR = re.compile(r"^// -----.*$", re.MULTILINE)
_OF_TESTS = ("%", "split", "verify-diagnostics")
_LONGEST = 6000
"""What is longer is not mutated: there is little new in it, and it takes long."""


@dataclass(frozen=True)
class Original:
    """A program that is there.

    Attributes:
        name: Its file, with the number of the module in it.
        text: The program, without comments.
        flags: The flags of `pyshardy-opt` that the file is for.
    """

    name: str
    text: str
    flags: tuple[str, ...]


@cache
def originals() -> tuple[Original, ...]:
    """All programs, in a fixed order."""
    paths = [*ROOT.glob("tests/filecheck/**/*.mlir"), *ROOT.glob("docs/examples/*.mlir"), *ROOT.glob("examples/*.mlir")]
    found = [original for path in sorted(paths) for original in _originals(path)]
    from ..unit.frontend import hlo_texts

    texts = {name: text for name, text in vars(hlo_texts).items() if isinstance(text, str) and "HloModule" in text}
    return (*found, *(Original(f"hlo/{name}", text, ()) for name, text in sorted(texts.items())))


def _originals(path: Path) -> list[Original]:
    content = path.read_text()
    run = _RUN.search(content)
    flags = shlex.split(run[1]) if run else []
    kept = tuple(flag for flag in flags if flag.startswith("-") and not any(part in flag for part in _OF_TESTS))
    chunks = [_COMMENT.sub("", chunk) for chunk in _SEPARATOR.split(content)]
    name = str(path.relative_to(ROOT))
    return [
        Original(f"{name}#{number}", chunk.strip() + "\n", kept)
        for number, chunk in enumerate(chunks)
        if chunk.strip() and len(chunk) < _LONGEST
    ]


@cache
def bytecodes() -> tuple[tuple[str, bytes], ...]:
    """The programs as bytecode, and some as portable artifacts of StableHLO, with their names."""
    found: list[tuple[str, bytes]] = []
    for original in originals():
        try:
            module = load_bytes(original.text.encode(), original.name, allow_unregistered_dialects=True)
        except ShardyError:
            continue  # a file-check of an error
        found.append((original.name, module.bytecode()))
        if len(found) % 4 == 0:
            with module.context:
                try:
                    version = stablehlo.get_current_version()
                    artifact: bytes = stablehlo.serialize_portable_artifact(module.mlir, version, True)
                except Exception:  # noqa: BLE001 (ops that no artifact can hold)
                    continue
                found.append((f"{original.name} portable", artifact))
    return tuple(found)
