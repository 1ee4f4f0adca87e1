"""Colours for MLIR text, which Pygments does not know."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text


class MlirLexer(RegexLexer):
    """Ops, values, symbols, attributes and types of MLIR's textual form."""

    name = "MLIR"
    aliases: ClassVar = ["mlir"]
    filenames: ClassVar = ["*.mlir"]
    tokens: ClassVar = {
        "root": [
            (r"\s+", Text),
            (r"//.*$", Comment.Single),
            (r'"(?:[^"\\]|\\.)*"', String),
            (r"%[\w$.-]+(?:#\d+)?", Name.Variable),
            (r"@[\w$.-]+", Name.Function),
            (r"#[\w$.]+", Name.Decorator),
            (r"![\w$.]+", Keyword.Type),
            (r"\^[\w$.]+", Name.Label),
            (r"\b(?:tensor|token)\b|\b(?:[su]?i\d+|f\d+|bf16|index)\b", Keyword.Type),
            (r"\b(?:module|func\.func|return|call|true|false|dense|array)\b", Keyword),
            (r"\b[a-z_]\w*\.[a-z_][\w.]*", Name.Builtin),
            (r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", Number),
            (r"[A-Za-z_]\w*", Name),
            (r"->|=|:|\?|x", Operator),
            (r"[()\[\]{}<>,|;*+/.-]", Punctuation),
            (r".", Text),
        ]
    }


def setup(app: Any) -> dict[str, Any]:
    """Give Sphinx the lexer."""
    app.add_lexer("mlir", MlirLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
