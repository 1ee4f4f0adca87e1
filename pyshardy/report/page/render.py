"""The page as one HTML file, from its data and from the templates, styles and scripts beside this file.

Texts of a program reach the page only as JSON without any `<`. A script turns them into text nodes, never into markup.
The page's content security policy forbids all other scripts and all requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyshardy.core.intern import register_cache
from pyshardy.report.page.model_explorer import model_explorer

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).parent
_SCRIPTS = (
    "base.js", "data.js", "explain.js", "parts.js", "run.js", "plan.js", "overview.js", "tree.js", "panel.js",
    "graph.js", "film.js", "compare.js", "main.js",
)  # fmt: skip
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class PageFormat(Enum):
    """The format of a report, by the name that users give."""

    HTML = "html"
    """A page."""
    JSON = "json"
    """The data of the page."""
    MODEL_EXPLORER = "model-explorer"
    """A graph for Model Explorer; it shows no hints."""

    def write(self, results: Sequence[dict[str, Any]]) -> bytes:
        """The report of one result, or of several results to compare, in this format.

        Args:
            results: What `describe` gives.
        """
        if self is PageFormat.HTML:
            return render(results).encode()
        if self is PageFormat.JSON:
            return json_bytes(results[0] if len(results) == 1 else {"results": results})
        return json_bytes(model_explorer(results))


def render(results: Sequence[dict[str, Any]]) -> str:
    """The page of one result, or of several results to compare.

    Args:
        results: What `describe` gives.
    """
    scripts, style = [_static(("vendor.js",)), _static(_SCRIPTS)], _static(("page.css",))
    template = environment().get_template("page.html")
    return template.render(
        title=results[0]["overview"]["title"],
        results=[script_json(one) for one in results],
        scripts=scripts,
        style=style,
        script_hashes=[_hash(script) for script in scripts],
        style_hash=_hash(style),
    )


def script_json(data: Any) -> str:
    """Data as JSON that is safe inside a `<script>`.

    >>> script_json({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    return json.dumps(data, separators=(",", ":")).translate(_ESCAPES)


def json_bytes(data: Any) -> bytes:
    """Data as a file."""
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


@lru_cache(maxsize=4)
def environment() -> Environment:
    """The templates; inserted values are escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_FOLDER / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


@lru_cache(maxsize=4)
def _static(names: tuple[str, ...]) -> str:
    """Some files of the directory, joined."""
    return "\n" + "\n".join((_FOLDER / "static" / name).read_text(encoding="utf-8").strip() for name in names) + "\n"


def _hash(text: str) -> str:
    """The hash of a text for the content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


register_cache(environment.cache_clear)
register_cache(_static.cache_clear)
