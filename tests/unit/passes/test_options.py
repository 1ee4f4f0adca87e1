from __future__ import annotations

from typing import Any

import pytest

from pyshardy.errors import UsageError
from pyshardy.passes.base import Pass
from pyshardy.passes.options import format_options, make_pass
from pyshardy.passes.table import PASSES, pass_class
from pyshardy.propagation.options import StrategyOption


class Sample(Pass):
    """A pass with an option of every type."""

    name = "sample"

    some_flag: bool = False
    how_many: int = 3
    some_text: str = ""
    strategy: StrategyOption = StrategyOption.BASIC


class Plain(Pass):
    """A pass without options."""

    name = "plain"


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("some-flag", "true", True),
        ("some-flag", "false", False),
        ("some-flag", "1", True),
        ("some-flag", "0", False),
        ("how-many", "0", 0),
        ("how-many", "12", 12),
        ("how-many", "-7", -7),
        ("some-text", "a,b", "a,b"),
        ("some-text", "", ""),
        ("strategy", "basic", StrategyOption.BASIC),
        ("strategy", "aggressive", StrategyOption.AGGRESSIVE),
        ("strategy", "basic-then-aggressive", StrategyOption.BASIC_THEN_AGGRESSIVE),
    ],
)
def test_options_are_read_by_their_type(option: str, text: str, value: Any) -> None:
    made = make_pass(Sample, {option: text})
    assert getattr(made, option.replace("-", "_")) == value
    others = {"some-flag", "how-many", "some-text", "strategy"} - {option}
    assert all(getattr(made, name.replace("-", "_")) == getattr(Sample(), name.replace("-", "_")) for name in others)


def test_several_options_at_once() -> None:
    made = make_pass(Sample, {"how-many": "1", "some-flag": "true"})
    assert made == Sample(some_flag=True, how_many=1)


def test_without_options_a_pass_has_its_defaults() -> None:
    assert make_pass(Sample, {}) == Sample()


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("some-flag", "yes", "reading option some-flag of sample: got 'yes', needed true or false"),
        ("some-flag", "TRUE", "reading option some-flag of sample: got 'TRUE', needed true or false"),
        ("some-flag", "", "reading option some-flag of sample: got '', needed true or false"),
        ("how-many", "1.5", "reading option how-many of sample: got '1.5', needed an integer"),
        ("how-many", "--5", "reading option how-many of sample: got '--5', needed an integer"),
        ("how-many", "²", "reading option how-many of sample: got '²', needed an integer"),
        ("how-many", "", "reading option how-many of sample: got '', needed an integer"),
        (
            "strategy",
            "BASIC",
            "reading option strategy of sample: got 'BASIC', needed one of basic, aggressive, basic-then-aggressive",
        ),
        (
            "strategy",
            "agressive",
            "reading option strategy of sample: got 'agressive', needed one of basic, aggressive, "
            "basic-then-aggressive\n  try: aggressive",
        ),
        (
            "some_flag",
            "true",
            "reading the options of sample: got 'some_flag', needed one of some-flag, how-many, some-text, strategy"
            "\n  try: some-flag",
        ),
        (
            "name",
            "other",
            "reading the options of sample: got 'name', needed one of some-flag, how-many, some-text, strategy",
        ),
    ],
)
def test_wrong_options_are_refused(option: str, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_pass(Sample, {option: text})
    assert str(caught.value) == message


def test_a_pass_without_options_says_so() -> None:
    with pytest.raises(UsageError, match="^reading the options of plain: got 'x', needed no options$"):
        make_pass(Plain, {"x": "1"})


@pytest.mark.parametrize(
    ("pass_", "text"),
    [
        (Plain(), ""),
        (Sample(), ""),
        (Sample(some_flag=True), "some-flag=true"),
        (Sample(how_many=-1, some_text="a,b"), "how-many=-1 some-text=a,b"),
        (Sample(strategy=StrategyOption.BASIC_THEN_AGGRESSIVE), "strategy=basic-then-aggressive"),
    ],
)
def test_only_options_that_differ_from_the_default_are_written(pass_: Pass, text: str) -> None:
    assert format_options(pass_) == text


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sdy-lift-inlined-meshes", "use-single-device-mesh-names=true"),
        ("sdy-import-func-calls", "add-data-flow-edges-on-named-computations=false"),
        ("sdy-populate-op-sharding-rules", "conservative-propagation=true"),
        ("sdy-basic-propagate", "keep-sharding-rules=true conservative-propagation=true"),
        ("sdy-aggressive-propagate", "propagation-strategy=basic"),
        ("sdy-op-priority-propagate", "run-op-priority-propagation=false"),
        ("sdy-user-priority-propagate", "keep-sharding-rules=true propagation-strategy=basic-then-aggressive"),
        ("sdy-unflatten-call-graph", "dedup-functions-fully=true"),
        ("sdy-insert-explicit-reshards", "enable-full-version=true mark-partial-result-with-unreduced-axes=true"),
        ("canonicalize", "enable-patterns=sdy-collective,sdy-reshard"),
    ],
)
def test_options_of_the_passes_survive_reading_and_writing(name: str, options: str) -> None:
    made = make_pass(pass_class(name), dict(pair.split("=") for pair in options.split()))  # type: ignore[arg-type]
    assert sorted(format_options(made).split()) == sorted(options.split())


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_can_be_made_without_options(name: str) -> None:
    assert format_options(make_pass(pass_class(name), {})) == ""
