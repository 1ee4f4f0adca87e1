from __future__ import annotations

import pytest

from pyshardy.core.text import format_symbol, quote, unquote

TEXTS = [
    ("", '""'),
    ("data", '"data"'),
    ("a b~!", '"a b~!"'),
    ('a"b', r'"a\22b"'),
    ("a\\b", r'"a\\b"'),
    ("\n\t\r\0\x7f", r'"\0A\09\0D\00\7F"'),
    ("é", r'"\C3\A9"'),
    ("轴🦀", r'"\E8\BD\B4\F0\9F\A6\80"'),
    ("\udcff", r'"\FF"'),
]


@pytest.mark.parametrize(("text", "quoted"), TEXTS)
def test_quoting_and_back(text: str, quoted: str) -> None:
    assert quote(text) == quoted
    assert unquote(quoted[1:-1]) == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"\n\t\\\"", '\n\t\\"'),
        (r"\41\4a\4A", "AJJ"),
        (r"\C3é\A9", "\udcc3é\udca9"),
        (r"é\C3\A9", "éé"),
        (r"\\41", r"\41"),
        (r"\\\41", r"\A"),
    ],
)
def test_unquoting_what_quoting_does_not_write(body: str, text: str) -> None:
    assert unquote(body) == text


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("mesh", "@mesh"),
        ("_m.0$x", "@_m.0$x"),
        ("0", '@"0"'),
        ("$m", '@"$m"'),
        ("a-b", '@"a-b"'),
        ("<lambda>", '@"<lambda>"'),
        ("é", r'@"\C3\A9"'),
        ("m\n", r'@"m\0A"'),
        ("", '@""'),
    ],
)
def test_symbols(name: str, printed: str) -> None:
    assert format_symbol(name) == printed
