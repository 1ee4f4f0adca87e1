"""Notebooks of `examples/` on the site, as they were executed, where a page says ``{notebook} training``.

Cells in Markdown become Markdown, code and what it shows become blocks, pictures stand in the page itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from notebooks import FOLDER, joined

_NOTEBOOK = re.compile(r"^```\{notebook\} (?P<name>\w+)\n```$", re.MULTILINE)
_TITLE = re.compile(r"\A# .*\n*")
_COLOUR = re.compile(r"(?<![-\w])color: #[0-9a-f]{6};? ?")


def insert_notebooks(app: Any, page: str, source: list[str]) -> None:
    """Put the cells where a page wants them, before it is read as Markdown."""

    def cells(match: re.Match[str]) -> str:
        path = FOLDER / f"{match['name']}.ipynb"
        app.env.note_dependency(str(path), docname=page)
        return "\n".join(page_lines(json.loads(path.read_text())))

    source[0] = _NOTEBOOK.sub(cells, source[0])


def page_lines(notebook: dict[str, Any]) -> Iterator[str]:
    """The cells as Markdown; the page has a title already."""
    for cell in notebook["cells"]:
        source = joined(cell["source"])
        if cell["cell_type"] == "markdown":
            yield from (*_TITLE.sub("", source).splitlines(), "")
            continue
        caption = f":caption: In[{cell.get('execution_count') or ' '}]"
        yield from ("```{code-block} python", caption, "", *source.splitlines(), "```", "")
        for output in cell["outputs"]:
            yield from output_lines(output)


def output_lines(output: dict[str, Any]) -> Iterator[str]:
    """What a cell has shown, as Markdown."""
    if output["output_type"] == "stream":
        yield from ("````text", *joined(output["text"]).splitlines(), "````", "")
        return
    data = {kind: joined(value) for kind, value in output["data"].items()}
    if html := html_of(data):
        yield from ("````{raw} html", *html.splitlines(), "````", "")
    else:
        yield from ("````text", *data["text/plain"].splitlines(), "````", "")


def html_of(data: dict[str, str]) -> str:
    """A picture or a table that stands in the page, in the colours of its theme; nothing for text."""
    if svg := data.get("image/svg+xml"):
        return f'<div class="picture">{svg}</div>'
    if png := data.get("image/png"):
        said = data.get("text/plain", "").replace('"', "")
        return f'<img class="figure" alt="{said}" src="data:image/png;base64,{"".join(png.split())}">'
    if table := data.get("text/html"):
        return f'<div class="output">{_COLOUR.sub("", table)}</div>'
    return ""


def setup(app: Any) -> dict[str, Any]:
    """Let Sphinx put notebooks in its pages."""
    app.connect("source-read", insert_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
