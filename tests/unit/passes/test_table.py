from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, get_type_hints

import pytest
from jaxlib.mlir import passmanager

from pyshardy.errors import UsageError
from pyshardy.ir.context import make_context
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.options import make_pass
from pyshardy.passes.table import PASSES, pass_class
from support.reference import jaxlib_version

needs_newest = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older versions lack passes and options")
_OPTION = re.compile(r"([\w-]+)=(\{[^}]*\}|[^\s{}]*)")


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_a_class_with_its_name_and_a_line_that_describes_it(name: str) -> None:
    cls = pass_class(name)
    assert issubclass(cls, Pass)
    assert cls.name == name
    assert isinstance(cls.anchor, Anchor)
    assert cls.run is not Pass.run
    first, *rest = (cls.__doc__ or "").splitlines()
    assert first[0].isupper()
    assert first.endswith(".")
    assert not first.startswith(f"{cls.__name__}(")  # what a data class says of itself
    assert rest[:1] in ([], [""])


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_a_file_of_its_name(name: str) -> None:
    module, class_name = PASSES[name].split(":")
    spelled = name.removeprefix("sdy-").removeprefix("pyshardy-")
    assert module.split(".")[-1] == spelled.replace("-", "_")
    assert class_name == "".join(part.capitalize() for part in spelled.split("-"))


def test_no_two_passes_share_a_class() -> None:
    assert len(set(PASSES.values())) == len(PASSES)


def test_a_pass_is_loaded_once() -> None:
    assert pass_class("symbol-dce") is pass_class("symbol-dce")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("", ""),
        ("sdy", ""),
        ("symbol_dce", "\n  try: symbol-dce"),
        ("SymbolDce", "\n  try: symbol-dce"),
        ("sdy-basic-propagat", "\n  try: sdy-basic-propagate"),
    ],
)
def test_an_unknown_pass_is_refused(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        pass_class(name)
    assert str(caught.value) == f"looking for a pass: got '{name}', needed one of {', '.join(PASSES)}{hint}"


def test_passes_are_values() -> None:
    cls = pass_class("sdy-unflatten-call-graph")
    assert cls() == cls()
    assert cls() != make_pass(cls, {"dedup-functions-fully": "true"})
    with pytest.raises(AttributeError):
        cls().dedup_functions_fully = True  # type: ignore[attr-defined]


def _reference_options(name: str) -> dict[str, str]:
    """The options of the reference's pass with their defaults; fails if it has no such pass with this anchor."""
    nested = f"func.func({name})" if pass_class(name).anchor is Anchor.FUNCTION else name
    with make_context():
        text = str(passmanager.PassManager.parse(f"builtin.module({nested})"))
    assert name in text
    return dict(_OPTION.findall(text))


REFERENCES = [name for name in PASSES if not name.startswith("pyshardy-")]
"""The passes that the reference has too."""


@needs_newest
@pytest.mark.parametrize("name", REFERENCES)
def test_passes_have_the_anchors_and_options_of_the_reference(name: str) -> None:
    cls: Any = pass_class(name)
    theirs = _reference_options(name)
    hints = get_type_hints(cls)
    for field in fields(cls):
        option = field.name.replace("_", "-")
        if field.name in cls.own_options:
            assert option not in theirs
        elif hints[field.name] is str:  # the reference prints no empty lists
            assert field.default == ""
        else:
            assert option in theirs, f"the reference has no such option: {cls.__name__}.own_options names it, if meant"
            assert getattr(make_pass(cls, {option: theirs[option]}), field.name) == field.default


@needs_newest
@pytest.mark.parametrize("name", [name for name in REFERENCES if pass_class(name).anchor is Anchor.FUNCTION])
def test_what_runs_on_functions_runs_only_there_in_the_reference(name: str) -> None:
    with make_context(), pytest.raises(ValueError, match=re.escape(name)):
        passmanager.PassManager.parse(f"builtin.module({name})")
