"""The text of errors."""

from __future__ import annotations

import inspect
from itertools import product

import pytest

from pyshardy import errors
from pyshardy.errors import (
    InvalidModuleError,
    InvalidRuleError,
    InvalidShardingError,
    NotationError,
    ShardyError,
    UnsupportedVersionError,
    UsageError,
)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "cutting bread"),
        ({"got": "a spoon"}, "cutting bread: got a spoon"),
        ({"needed": "a knife"}, "cutting bread: needed a knife"),
        ({"got": "a spoon", "needed": "a knife"}, "cutting bread: got a spoon, needed a knife"),
        ({"where": "the table"}, "cutting bread\n  at the table"),
        ({"hint": "the drawer"}, "cutting bread\n  try: the drawer"),
        (
            {"where": "the table", "got": "a spoon", "needed": "a knife", "hint": "the drawer"},
            "cutting bread: got a spoon, needed a knife\n  at the table\n  try: the drawer",
        ),
    ],
)
def test_a_message_holds_the_parts_that_there_are(parts: dict[str, str], text: str) -> None:
    error = ShardyError("cutting bread", **parts)
    assert str(error) == text
    assert error.args == (text,)
    assert error.doing == "cutting bread"
    assert {name: getattr(error, name) for name in ("where", "got", "needed", "hint")} == (
        dict.fromkeys(("where", "got", "needed", "hint")) | parts
    )


def test_one_that_knows_more_keeps_the_rest() -> None:
    error = ShardyError("cutting", got="a spoon", needed="a knife", hint="the drawer")
    assert str(error.located("cutting bread")) == "cutting bread: got a spoon, needed a knife\n  try: the drawer"
    assert str(error.located("cutting", "the table")) == (
        "cutting: got a spoon, needed a knife\n  at the table\n  try: the drawer"
    )
    assert error.located("cutting", "the floor").where == "the table"


@pytest.mark.parametrize(
    "kind", [InvalidShardingError, InvalidModuleError, InvalidRuleError, UnsupportedVersionError, UsageError]
)
def test_every_kind_is_caught_as_the_one_of_pyshardy(kind: type[ShardyError]) -> None:
    with pytest.raises(ShardyError, match="^reading: got x$") as caught:
        raise kind("reading", got="x")
    assert type(caught.value) is kind


def test_every_class_of_the_module_is_an_error_of_pyshardy() -> None:
    classes = [value for _, value in inspect.getmembers(errors, inspect.isclass) if value.__module__ == errors.__name__]
    assert {ShardyError, NotationError, UsageError} < set(classes)
    assert all(issubclass(kind, ShardyError) for kind in classes)


@pytest.mark.parametrize(
    ("text", "position", "line", "caret"),
    [
        ("abc", 0, "abc", "^"),
        ("abc", 2, "abc", "  ^"),
        ("abc", 3, "abc", "   ^"),
        ("", 0, "", "^"),
        ("ab\ncd\nef", 4, "cd", " ^"),
        ("ab\ncd\nef", 3, "cd", "^"),
        ("ab\ncd\nef", 2, "ab", "  ^"),
        ("ab\ncd\n", 6, "", "^"),
    ],
)
def test_a_notation_error_points_at_the_place(text: str, position: int, line: str, caret: str) -> None:
    error = NotationError("reading", text=text, position=position, got="x", needed="y")
    assert str(error).split("\n") == ["reading: got x, needed y", f"  {line}", f"  {caret}"]
    assert (error.text, error.position) == (text, position)


@pytest.mark.parametrize(("got", "needed"), [*product([None, "x"], [None, "y"])])
def test_the_hint_of_a_notation_error_comes_last(got: str | None, needed: str | None) -> None:
    lines = str(NotationError("reading", text="ab", position=1, got=got, needed=needed, hint="z")).split("\n")
    assert lines[0] == str(ShardyError("reading", got=got, needed=needed))
    assert lines[1:] == ["  ab", "   ^", "  try: z"]


def test_an_invalid_module_has_no_diagnostics_of_its_own() -> None:
    assert InvalidModuleError("reading").diagnostics == ()
