"""The site works without a network: no page fetches a font, a script or a picture from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.errors import SphinxError

_FETCHED = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^"'>\s]+|"""
    r"""url\(\s*["']?(?:https?:)?//[^)]*|@import\s+["'](?:https?:)?//[^"']*"""
)


def fetched(text: str) -> list[str]:
    """What a page or a style sheet fetches from elsewhere; links that a reader may follow do not count."""
    return _FETCHED.findall(text)


def check_site(app: Any, error: Exception | None) -> None:
    """Refuse a site of which a page fetches something."""
    if error is not None or app.builder.name != "html":
        return
    for path in sorted(Path(app.outdir).rglob("*")):
        if path.suffix in (".html", ".css") and (found := fetched(path.read_text())):
            raise SphinxError(f"{path} fetches from elsewhere: {found[0]}")


def setup(app: Any) -> dict[str, Any]:
    """Let Sphinx check the site that it has built."""
    app.connect("build-finished", check_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
