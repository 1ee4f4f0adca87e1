"""Drawings stand in the page itself, not beside it as images, so that they have the colours of the theme."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

_STYLE = re.compile(r"<style>.*?</style>\n?", re.DOTALL)


class InlineDrawings(SphinxPostTransform):
    """Replaces images of `docs/drawings` by their SVG; the colours come from `static/site.css`."""

    default_priority = 1
    formats = ("html", "dirhtml")

    def run(self, **kwargs: Any) -> None:
        """Replace them in one page."""
        for image in list(self.document.findall(nodes.image)):
            if "drawings/" in image["uri"] and image["uri"].endswith(".svg"):
                text = (Path(self.env.srcdir) / image["uri"]).read_text()
                text = _STYLE.sub("", text).replace(
                    "<svg ", f'<svg role="img" aria-label="{escape(image.get("alt", ""))}" ', 1
                )
                image.replace_self(nodes.raw("", f'<div class="drawing">{text}</div>', format="html"))


def setup(app: Any) -> dict[str, Any]:
    """Give Sphinx the transform."""
    app.add_post_transform(InlineDrawings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
