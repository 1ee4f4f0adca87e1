"""Names of repeated layers as one."""

from __future__ import annotations

import random

import pytest

from pyshardy.core.folding import Folded, Run, fold_names


def names(*given: str) -> list[str]:
    return [found.name for found in fold_names((name, None) for name in given)]


@pytest.mark.parametrize(
    "pattern",
    ["layers[{}]['w1']", "params['Block_{}']['Dense_0']['kernel']", "params['layer_{}/linear']['w']", "net.blocks[{}].up",
     "['h{}']", "{}", "arg{}"],
)  # fmt: skip
def test_numbers_in_a_row_are_one(pattern: str) -> None:
    assert names(*(pattern.format(number) for number in range(24))) == [pattern.format("0..23")]


@pytest.mark.parametrize(
    ("given", "folded"),
    [
        ([], []),
        (["x"], ["x"]),
        (["x", "x", "x"], ["x", "x", "x"]),
        (["a[0]", "a[1]"], ["a[0]", "a[1]"]),
        (["a[0]", "a[1]", "a[2]"], ["a[0..2]"]),
        (["a[2]", "a[0]", "a[1]"], ["a[0..2]"]),
        (["a[0]", "b[1]", "a[2]"], ["a[0]", "b[1]", "a[2]"]),
        (["a", "a_1", "a_2", "a_3"], ["a", "a_1..3"]),
        (["a[5]", "a[10]", "a[15]"], ["a[5,10..15]"]),
        (["a[0]", "a[1]", "a[2]", "a[7]", "a[20]"], ["a[0..2]", "a[7]", "a[20]"]),
        (["a[0]", "a[1]", "a[2]", "a[4]", "a[5]", "a[6]"], ["a[0..2]", "a[4..6]"]),
        (["a[0]", "a[01]", "a[02]", "a[03]"], ["a[0]", "a[01]", "a[02]", "a[03]"]),
        (["f(32)", "f(32)", "f(32)"], ["f(32)", "f(32)", "f(32)"]),
    ],
)
def test_which_names_fold(given: list[str], folded: list[str]) -> None:
    assert names(*given) == folded


def test_several_numbers_fold_one_after_the_other() -> None:
    given = [f"layers[{layer}]['w{number}']" for layer in range(4) for number in range(3)]
    assert names(*given) == ["layers[0..3]['w0..2']"]
    two = [f"layers[{layer}]['norm{number}']" for layer in range(4) for number in (1, 2)]
    assert names(*two) == ["layers[0..3]['norm1']", "layers[0..3]['norm2']"]


def test_variables_in_a_list_fold_by_layer() -> None:
    """As keras has them: equal tensors at several places of each layer."""
    found = fold_names((f"variables[{number}]", number % 6 in (0, 1, 5)) for number in range(144))
    assert [one.name for one in found if 0 in one.members] == ["variables[0,6..138]"]
    assert [len(one.members) for one in found if one.name.startswith("variables[5")] == [24]


def test_what_is_not_equal_does_not_fold() -> None:
    found = fold_names((f"a[{number}]", number == 3) for number in range(8))
    assert [one.name for one in found] == ["a[0..2]", "a[3]", "a[4..7]"]
    assert found[0] == Folded("a[0..2]", (0, 1, 2))


def test_runs_in_words() -> None:
    assert [str(run) for run in (Run(3, 3), Run(3, 5), Run(3, 9, 3))] == ["3", "3..5", "3,6..9"]


def test_every_item_is_in_one_name_and_the_name_says_which() -> None:
    """On random lists: a name stands for the numbers of its items, no more and no fewer."""
    random.seed(0)
    for _ in range(200):
        given = [f"a[{random.randrange(6)}].b{random.randrange(5)}" for _ in range(random.randrange(20))]
        given = list(dict.fromkeys(given))
        found = fold_names((name, random.randrange(2)) for name in given)
        assert sorted(member for one in found for member in one.members) == list(range(len(given)))
        assert [one.members[0] for one in found] == sorted(one.members[0] for one in found)
        for one in found:
            assert sorted(given[member] for member in one.members) == sorted(spelled_out(one.name))


def spelled_out(name: str) -> list[str]:
    """The names that `a[0..2].b1,3..5` stands for."""
    head, _, tail = name.removeprefix("a[").partition("].b")
    return [f"a[{one}].b{other}" for one in numbers(head) for other in numbers(tail)]


def numbers(run: str) -> range:
    start, _, last = run.partition("..")
    first, _, second = start.partition(",")
    step = int(second) - int(first) if second else 1
    return range(int(first), int(last or first) + 1, step)


def test_the_spelling_out_notices_a_wrong_name() -> None:
    assert spelled_out("a[0..2].b1,3..5") == [f"a[{one}].b{other}" for one in (0, 1, 2) for other in (1, 3, 5)]
    assert spelled_out("a[0..3].b1") != [f"a[{one}].b1" for one in (0, 1, 2)]
