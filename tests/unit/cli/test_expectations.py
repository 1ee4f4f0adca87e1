from __future__ import annotations

import pytest

from pyshardy.cli.expectations import Expectation, check_expectations, find_expectations
from pyshardy.ir.diagnostics import Diagnostic, Severity


def diagnostic(severity: str, line: int | None, message: str, *notes: Diagnostic) -> Diagnostic:
    location = None if line is None else f'loc("-":{line}:7)'
    return Diagnostic(Severity(severity), message, location, notes)


def error(line: int | None, message: str, *notes: Diagnostic) -> Diagnostic:
    return diagnostic("error", line, message, *notes)


def only(text: str) -> Expectation:
    (found,) = find_expectations(text)
    return found


def problems(text: str, *diagnostics: Diagnostic) -> list[tuple[int, str]]:
    """What does not agree between the comments of a text and the diagnostics."""
    return list(check_expectations(find_expectations(text), diagnostics))


@pytest.mark.parametrize("severity", ["error", "warning", "remark", "note"])
def test_severities(severity: str) -> None:
    found = only(f"// expected-{severity} {{{{bad}}}}")
    assert found.severity == severity
    for other in Severity:
        assert found.matches(diagnostic(other.value, 1, "bad")) == (other.value == severity)


@pytest.mark.parametrize(
    ("text", "line", "written_at"),
    [
        ("// expected-error {{bad}}", 1, 1),
        ("\n\nop // expected-error {{bad}}", 3, 3),
        ("// expected-error@+1 {{bad}}\nop", 2, 1),
        ("// expected-error@+12 {{bad}}", 13, 1),
        ("op\nop\n// expected-error@-2 {{bad}}", 1, 3),
        ("// expected-error @+1 {{bad}}\nop", 2, 1),
        ("//expected-error@+1{{bad}}\nop", 2, 1),
        ("op\n// expected-error@above {{bad}}", 1, 2),
        ("// expected-error@below {{bad}}\nop", 2, 1),
        ("// expected-error@unknown {{bad}}", None, 1),
        ("op // text before expected-error {{bad}} and behind", 1, 1),
    ],
)
def test_places(text: str, line: int | None, written_at: int) -> None:
    found = only(text)
    assert (found.line, found.written_at) == (line, written_at)
    assert found.matches(error(line, "bad"))
    assert not found.matches(error(99, "bad"))


def test_above_and_below_skip_other_expectations() -> None:
    text = """op
// expected-error@above {{1}}
// expected-error@above {{2}}
// expected-error@below {{3}}
// expected-warning@below {{4}}
op"""
    assert [(found.line, found.written_at) for found in find_expectations(text)] == [(1, 2), (1, 3), (6, 4), (6, 5)]


@pytest.mark.parametrize(
    ("text", "message", "matches"),
    [
        ("{{bad}}", "this is bad indeed", True),
        ("{{bad}}", "this is good", False),
        ("{{a.c}}", "abc", False),
        ("{{(a|b)*}}", "x (a|b)* y", True),
        ("{{set {x}}}", "a set {x}", True),
        ("{{set {x}}}", "a set {x", False),
        ("{{'op' <@m, [{\"a\"}]>}}", "the 'op' <@m, [{\"a\"}]>", True),
        ("{{}}", "anything", True),
        ("{{Bad}}", "bad", False),
    ],
)
def test_texts_are_taken_literally(text: str, message: str, matches: bool) -> None:
    assert only(f"// expected-error {text}").matches(error(1, message)) == matches


@pytest.mark.parametrize(
    ("text", "message", "matches"),
    [
        ("{{size {{[0-9]+}}}}", "size 12", True),
        ("{{size {{[0-9]+}}}}", "size x", False),
        ("{{size {{[0-9]+}} of}}", "size 12 of 3", True),
        ("{{size {{[0-9]+}} of}}", "size 12 or 3", False),
        ("{{{{a|b}}, {{c|d}} (.)}}", "b, c (.)", True),
        ("{{{{a|b}}, {{c|d}} (.)}}", "b, c (x)", False),
        ("{{{{a{2}}} b}}", "aa b", True),
        ("{{{{a{2}}} b}}", "a b", False),
        ("{{no part.}}", "no part.", True),
        ("{{no part.}}", "no parts", False),
    ],
)
def test_parts_of_texts_may_be_regular_expressions(text: str, message: str, matches: bool) -> None:
    assert only(f"// expected-error-re {text}").matches(error(1, message)) == matches


def test_several_expectations_on_one_line() -> None:
    found = find_expectations("op // expected-error {{a}} expected-warning@+1 {{b}}\nop")
    assert [(one.severity, one.line, one.pattern.pattern) for one in found] == [("error", 1, "a"), ("warning", 2, "b")]


@pytest.mark.parametrize(
    "text", ["", "op", "// expected-error bad", "// expected-fatal {{bad}}", "// expected {{bad}}"]
)
def test_other_texts_expect_nothing(text: str) -> None:
    assert find_expectations(text) == []


def test_all_that_is_expected_and_comes_agrees() -> None:
    text = """op // expected-warning {{odd}}
// expected-error@+2 {{bad}}
// expected-note@+1 {{seen}}
op"""
    assert problems(text, diagnostic("warning", 1, "odd"), error(4, "bad", diagnostic("note", 4, "seen here"))) == []


def test_nothing_expected_and_nothing_produced() -> None:
    assert problems("op") == []


def test_what_is_expected_must_come() -> None:
    assert problems("op\nop // expected-error {{bad (}}") == [(2, 'expected error "bad\\ \\(" was not produced')]


def test_what_comes_must_be_expected() -> None:
    assert problems("op", error(1, "bad")) == [(1, "unexpected error: bad")]


def test_a_diagnostic_without_a_place() -> None:
    assert problems("// expected-error@unknown {{bad}}", error(None, "bad")) == []
    assert problems("// expected-error {{bad}}", error(None, "bad")) == [
        (0, "unexpected error: bad"),
        (1, 'expected error "bad" was not produced'),
    ]


@pytest.mark.parametrize("found", [error(2, "bad"), diagnostic("warning", 1, "bad"), error(1, "good")])
def test_line_severity_and_text_must_all_agree(found: Diagnostic) -> None:
    position = 2 if '":2:' in str(found.location) else 1
    assert problems("op // expected-error {{bad}}", found) == [
        (position, f"unexpected {found.severity.value}: {found.message}"),
        (1, 'expected error "bad" was not produced'),
    ]


@pytest.mark.parametrize(
    ("expected", "produced", "count"), [(1, 1, 0), (2, 2, 0), (1, 2, 1), (2, 1, 1), (3, 1, 2), (0, 2, 2)]
)
def test_every_expectation_stands_for_one_diagnostic(expected: int, produced: int, count: int) -> None:
    text = "op " + "expected-error {{bad}} " * expected
    found = problems(text, *[error(1, "bad")] * produced)
    assert len(found) == count
    assert all("unexpected" in message for _, message in found) == (produced > expected or not count)


def test_notes_need_not_be_expected() -> None:
    note = diagnostic("note", 3, "seen here")
    assert problems("op // expected-error {{bad}}", error(1, "bad", note)) == []


def test_an_expected_note_must_come() -> None:
    text = "op // expected-error {{bad}} expected-note@+1 {{seen}}\nop"
    assert problems(text, error(1, "bad", diagnostic("note", 2, "seen"))) == []
    assert problems(text, error(1, "bad")) == [(1, 'expected note "seen" was not produced')]


def test_notes_of_notes_count() -> None:
    inner = diagnostic("note", 1, "outer", diagnostic("note", 1, "inner"))
    assert problems("op // expected-error {{bad}} expected-note {{inner}}", error(1, "bad", inner)) == []
