from __future__ import annotations

import pytest

from pyshardy.cli.expectations import Expectation, check_expectations, find_expectations
from pyshardy.errors import InvalidModuleError
from pyshardy.ir.diagnostics import Diagnostic, Severity
from pyshardy.ir.locations import source_position


def diagnostic(severity: str, line: int | None, message: str, *notes: Diagnostic) -> Diagnostic:
    location = None if line is None else f'loc("-":{line}:7)'
    return Diagnostic(Severity(severity), message, location, notes)


def error(line: int | None, message: str, *notes: Diagnostic) -> Diagnostic:
    return diagnostic("error", line, message, *notes)


def only(text: str) -> Expectation:
    (found,) = find_expectations(text)
    return found


def problems(text: str, *diagnostics: Diagnostic, only_expected: bool = False) -> list[tuple[int, str]]:
    """Line, 0 for none, and message of what does not agree between the comments of a text and the diagnostics."""
    found = list(check_expectations(find_expectations(text), diagnostics, only_expected=only_expected))
    assert {problem.severity for problem in found} <= {Severity.ERROR}
    return [((source_position(problem.location) or ("", 0))[1], problem.message) for problem in found]


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
        ("op\n// expected-error@below {{bad}}", 2, 2),
        ("// expected-error@above {{bad}}\nop", 1, 1),
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
        ("{{{{^}}exactly{{$}}}}", "exactly", True),
        ("{{{{^}}exactly{{$}}}}", "exactly not", False),
        ("{{{{[[:digit:]]+}} {{[[:alpha:]_]+}}}}", "12 a_b", True),
        ("{{{{[[:digit:]]+}} of}}", "x of", False),
        ("{{no part.}}", "no part.", True),
        ("{{no part.}}", "no parts", False),
    ],
)
def test_parts_of_texts_may_be_regular_expressions(text: str, message: str, matches: bool) -> None:
    assert only(f"// expected-error-re {text}").matches(error(1, message)) == matches


def test_several_expectations_on_one_line() -> None:
    found = find_expectations("op // expected-error {{a}} expected-warning@+1 {{b}}\nop")
    assert [(one.severity, one.line, one.text) for one in found] == [("error", 1, "a"), ("warning", 2, "b")]
    assert [one.column for one in found] == [7, 28]


@pytest.mark.parametrize(
    ("comment", "text"),
    [
        ("{{got {a = {b = {}}} here}}", "got {a = {b = {}}} here"),
        ("{{a }} b}}", "a }} b"),
        ("{{a }} b}} \t\r", "a }} b"),
        ("{{{a}}}", "{a}"),
        ("{{a}} behind", "a"),
    ],
)
def test_the_text_of_the_only_expectation_of_a_line_ends_with_the_line(comment: str, text: str) -> None:
    assert only(f"op // expected-error {comment}").text == text


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
    assert problems("op\nop // expected-error {{bad (}}") == [(2, 'expected error "bad (" was not produced')]


def test_what_comes_must_be_expected() -> None:
    assert problems("op", error(1, "bad")) == [(1, "unexpected error: bad")]


def test_a_diagnostic_without_a_place() -> None:
    assert problems("// expected-error@unknown {{bad}}", error(None, "bad")) == []
    assert problems("// expected-error {{bad}}", error(None, "bad")) == [
        (0, "unexpected error: bad"),
        (1, 'expected error "bad" was not produced'),
    ]


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (error(2, "bad"), (2, "unexpected error: bad")),
        (error(1, "good"), (1, "unexpected error: good")),
        (diagnostic("note", 2, "bad"), (2, "unexpected note: bad")),
        (diagnostic("warning", 1, "bad"), (1, "'warning' diagnostic emitted when expecting a 'error'")),
    ],
)
def test_line_severity_and_text_must_all_agree(found: Diagnostic, problem: tuple[int, str]) -> None:
    missing = (1, 'expected error "bad" was not produced')
    assert problems("op // expected-error {{bad}}", found) == [problem, missing]


@pytest.mark.parametrize(("expected", "produced"), [(1, 1), (1, 2), (1, 5), (2, 2), (2, 3)])
def test_an_expectation_stands_for_one_diagnostic_or_several_equal_ones(expected: int, produced: int) -> None:
    assert problems("op " + "expected-error {{bad}} " * expected, *[error(1, "bad")] * produced) == []


@pytest.mark.parametrize(("expected", "produced"), [(1, 0), (2, 1), (3, 1)])
def test_every_expectation_needs_a_diagnostic_of_its_own(expected: int, produced: int) -> None:
    found = problems("op " + "expected-error {{bad}} " * expected, *[error(1, "bad")] * produced)
    assert found == [(1, 'expected error "bad" was not produced')] * (expected - produced)


@pytest.mark.parametrize(
    ("count", "allowed"),
    [("0", {0}), ("1", {1}), ("2", {2}), ("0+", {0, 1, 2, 3}), ("2+", {2, 3}), ("0-1", {0, 1}), ("1-2", {1, 2})],
)
@pytest.mark.parametrize("produced", range(4))
def test_counts(count: str, allowed: set[int], produced: int) -> None:
    found = problems(f"// expected-error@+1 {count} {{{{bad}}}}\nop", *[error(2, "bad")] * produced)
    assert (not found) == (produced in allowed)


def test_a_count_that_is_not_reached_or_exceeded() -> None:
    text = "op // expected-error 2 {{bad}}"
    assert problems(text) == [(1, 'expected error "bad" was not produced')]
    assert problems(text, error(1, "bad")) == [(1, 'expected error "bad" was produced 1 of 2 times')]
    assert problems(text, *[error(1, "bad")] * 3) == [(1, "unexpected error: bad")]


def test_expectations_that_are_still_open_come_first() -> None:
    text = "op // expected-error {{b}} expected-error {{bad}}"
    assert problems(text, error(1, "bad"), error(1, "bad")) == []
    assert problems(text, error(1, "bad")) == [(1, 'expected error "bad" was not produced')]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{a {{[}} b}}", "invalid regex: "),
        ("{{a {{b}}", "found start of regex with no end '}}'"),
        ("{{{{a}} {{b}}", "found start of regex with no end '}}'"),
    ],
)
def test_regular_expressions_that_are_none_are_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidModuleError) as caught:
        find_expectations(f"op\nop // expected-error-re {text}")
    (problem,) = caught.value.diagnostics
    assert problem.message.startswith(reason)
    assert source_position(problem.location) == ("-", 2, 7)


def test_notes_must_be_expected_like_everything_else() -> None:
    note = diagnostic("note", 3, "seen here")
    text = "op // expected-error {{bad}}"
    assert problems(text, error(1, "bad", note)) == [(3, "unexpected note: seen here")]
    assert problems(f"{text}\n\nop // expected-note {{{{seen here}}}}", error(1, "bad", note)) == []


def test_an_expected_note_must_come() -> None:
    text = "op // expected-error {{bad}} expected-note@+1 {{seen}}\nop"
    assert problems(text, error(1, "bad", diagnostic("note", 2, "seen"))) == []
    assert problems(text, error(1, "bad")) == [(1, 'expected note "seen" was not produced')]


def test_notes_of_notes_count() -> None:
    inner = diagnostic("note", 1, "outer", diagnostic("note", 1, "inner"))
    text = "op // expected-error {{bad}} expected-note {{inner}}"
    assert problems(text, error(1, "bad", inner)) == [(1, "unexpected note: outer")]
    assert problems(f"{text} expected-note {{{{outer}}}}", error(1, "bad", inner)) == []


def test_where_only_the_expected_counts_others_may_come() -> None:
    text = "op // expected-error {{bad}}"
    others = error(2, "other", diagnostic("note", 3, "seen")), diagnostic("warning", 1, "bad"), error(None, "bad")
    assert problems(text, error(1, "bad"), *others, only_expected=True) == []
    missing = [(1, 'expected error "bad" was not produced')]
    assert problems(text, *others, only_expected=True) == missing


def test_diagnostics_in_other_files_are_not_those_expected_here() -> None:
    elsewhere = Diagnostic(Severity.ERROR, "bad", 'loc("model.py":1:7)')
    (unexpected, missing) = check_expectations(find_expectations("op // expected-error {{bad}}"), [elsewhere])
    assert (unexpected.message, unexpected.location) == ("unexpected error: bad", elsewhere.location)
    assert missing.message == 'expected error "bad" was not produced'
