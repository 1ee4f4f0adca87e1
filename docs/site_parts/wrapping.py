"""What programs print: sentences are broken where the page ends, tables and code are not."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

_LONG = 100
_RULES = "\u2500\u2501\u2502\u2503"
"""Lines of tables."""


class WrapSentences(SphinxPostTransform):
    """Marks blocks of text, which `static/site.css` then wraps."""

    default_priority = 1

    def run(self, **kwargs: Any) -> None:
        """Mark those of one page."""
        for block in self.document.findall(nodes.literal_block):
            if block.get("language") in ("text", "console") and is_prose(block.astext()):
                block["classes"].append("wrapped")


def is_prose(text: str) -> bool:
    """Whether a text has long lines and is neither a table nor a module.

    >>> is_prose("a word " * 30), is_prose("\u2500" * 200), is_prose("module {\\n" + "x" * 200)
    (True, False, False)
    """
    is_long = any(len(line) > _LONG for line in text.splitlines())
    return is_long and not any(sign in text for sign in _RULES) and "module {" not in text


def setup(app: Any) -> dict[str, Any]:
    """Give Sphinx the transform."""
    app.add_post_transform(WrapSentences)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
