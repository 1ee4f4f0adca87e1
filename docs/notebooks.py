"""Executes the notebooks of `examples/` and writes what their cells show into them: `python docs/notebooks.py`.

It needs the optional dependencies `notebooks`: nbclient, ipykernel and matplotlib.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
TIMEOUT_S = 300
_ADDRESS = re.compile(r"(<[\w. ]+) at 0x[0-9a-f]+>")
_ESTIMATES = re.compile(r"^.*: estimates$", re.MULTILINE)


def execute(path: Path) -> Any:
    """A notebook with what its cells show, executed in a process of its own.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell raises an error.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(path.parent)}})
    client.execute(env={name: value for name, value in os.environ.items() if name != "XLA_FLAGS"})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def shown(notebook: Any) -> list[str]:
    """What cells show as text, and the kinds of pictures; addresses and the figures of estimates are left out.

    What a cell prints in a row is one text, in however many parts it arrives.
    """
    found: list[str] = []
    for cell in notebook["cells"]:
        is_printing = False
        for output in cell.get("outputs", []):
            was_printing, is_printing = is_printing, output["output_type"] == "stream"
            if is_printing:
                before = found.pop() if was_printing else ""
                found.append(before + _ESTIMATES.sub("estimates", joined(output["text"])))
            elif kind := picture(output.get("data", {})):
                found.append(kind)
            else:
                found.append(_ADDRESS.sub(r"\1>", joined(output["data"]["text/plain"])))
    return found


def picture(data: dict[str, Any]) -> str | None:
    """The kind of picture that an output is, or None."""
    return next((kind for kind in ("image/svg+xml", "image/png") if kind in data), None)


def joined(text: str | list[str]) -> str:
    """A text that a notebook may hold as a list of lines."""
    return text if isinstance(text, str) else "".join(text)


if __name__ == "__main__":
    import nbformat

    for path in NOTEBOOKS:
        nbformat.write(execute(path), path)
    sys.exit(0)
