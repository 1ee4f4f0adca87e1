from __future__ import annotations

import pytest

from pyshardy.errors import InvalidRuleError, NotationError, ShardyError, UsageError
from pyshardy.rules.einsum import einsum_rule

from .probe import spec


def rule(text: str, shapes: str, **options: object) -> str:
    """The text of the rule for these shapes, without what all have."""
    return str(einsum_rule(text, **options)(spec("my.op", shapes)))[1:-1].removesuffix(", custom")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        ("i, i, i -> i", "4, 2, 3 -> 8", "([i], [i], [i])->([i]) {i=2}"),
        ("... i -> ...", "2x3x4 -> 2x3", "([i, j, k])->([i, j]) {i=2, j=3, k=4}"),
        (
            "...1 i, ...2 j -> ...1 i",
            "2x3x4, 5x6 -> 2x3x4",
            "([i, j, k], [l, m])->([i, j, k]) {i=2, j=3, k=4, l=5, m=6}",
        ),
        ("...0 i -> ...", "2x4 -> 2", "([i, j])->([i]) {i=2, j=4}"),
        ("... (a b) -> ... a b", "7x6 -> 7x2x3", "([i, jk])->([i, j, k]) {i=7, j=2, k=3}"),
        ("..., a -> ... a", "3x2, 4 -> 3x2x4", "([i, j], [k])->([i, j, k]) {i=3, j=2, k=4}"),
        ("-> i", "() -> 4", "([])->([i]) {i=4}"),
        ("a, -> a", "4, () -> 4", "([i], [])->([i]) {i=4}"),
        ("...->...", "() -> ()", "([])->([])"),
        ("länge B_2 -> B_2", "3x4 -> 4", "([i, j])->([j]) {i=3, j=4}"),
        ("i, -> i", "4, token -> 4", "([i], [])->([i]) {i=4}"),
    ],
)
def test_rules(text: str, shapes: str, expected: str) -> None:
    assert rule(text, shapes) == expected


@pytest.mark.parametrize(
    ("text", "shapes", "sizes", "expected"),
    [
        ("i (j k) -> j (i k)", "2x12 -> 3x8", {"k": 4}, "([i, jk])->([j, ik]) {i=2, j=3, k=4}"),
        ("i (j k) -> j (i k)", "2x12 -> 3x8", {}, "([i, jk])->([j, ik]) {i=2, j=3, k=4}"),
        ("(i j) -> (j i)", "6 -> 6", {"i": 2}, "([ij])->([ji]) {i=2, j=3}"),
        ("(a b), (b c), c -> a", "6, 10, 5 -> 3", {}, "([ij], [jk], [k])->([i]) {i=3, j=2, k=5}"),
    ],
)
def test_sizes_of_compound_factors(text: str, shapes: str, sizes: dict[str, int], expected: str) -> None:
    assert rule(text, shapes, sizes=sizes) == expected


def test_factors_of_size_1_are_left_out_of_compound_dimensions() -> None:
    assert rule("(i j) k -> i j k", "6x5 -> 6x1x5") == "([i, j])->([i, k, j]) {i=6, j=5, k=1}"
    assert rule("(i j) -> (j i)", "1 -> 1", sizes={"i": 1}) == "([i])->([j]) {i=1, j=1}"


def test_kinds() -> None:
    found = rule("... i k, ... k j, s p -> ... i j r", "2x4x8, 2x8x16, 3x5 -> 2x4x16x7", reduction="k s",
                 need_replication=["p"], permutation="r", blocked="... i")  # fmt: skip
    assert found == (
        "([i, j, k], [i, k, l], [m, n])->([i, j, l, o]) {i=2, j=4, k=8, l=16, m=3, n=5, o=7} "
        "reduction={k, m} need_replication={n} permutation={o} blocked_propagation={i, j}"
    )


def test_leading_dimensions_may_be_special() -> None:
    assert rule("...1 i -> i", "2x3x4 -> 4", reduction="...1") == "([i, j, k])->([k]) {i=2, j=3, k=4} reduction={i, j}"


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("i j", 3, "got the end of the text, needed '->'"),
        ("i -> j -> k", 7, "got '-', needed the end of the text"),
        ("i, (j) -> i", 3, "needed at least two names in a compound dimension"),
        ("() -> i", 0, "needed at least two names"),
        ("(i (j k)) -> i", 3, "got '(', needed a name that begins with a letter or ')'"),
        ("(i j -> i", 5, "got '-', needed a name that begins with a letter or ')'"),
        ("(i,j)->i", 2, "got ',', needed a name that begins with a letter or ')'"),
        ("i) -> i", 1, "got ')', needed a name"),
        ("i ... -> i", 2, "needed '...' at the start of a value only"),
        ("... ... -> i", 4, "needed '...' at the start"),
        ("i .. -> i", 2, "got '.', needed a name"),
        ("1i -> i", 0, "got '1', needed a name that begins with a letter"),
        ("_i -> i", 0, "got '_', needed a name"),
        ("i j i -> i", 4, "got i again, needed every name at most once per value"),
        ("i (j i) -> i", 5, "got i again"),
    ],
)
def test_wrong_notation(text: str, position: int, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        einsum_rule(text)
    assert message in str(caught.value)
    assert caught.value.position == position, str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": "l"}, "got a kind for l, needed one of (...) i j k"),
        ({"reduction": "i"}, "got the reduction i in a result"),
        ({"reduction": "j", "permutation": ["j"]}, "got j as reduction and as permutation, needed one kind"),
        ({"blocked": "l"}, "got a kind for l"),
        ({"sizes": {"l": 2}}, "got a size for l"),
        ({"sizes": {"i": 2}}, "got a size for i, needed sizes of factors that appear only in compound dimensions"),
        ({"sizes": {"j": 0}}, "got size 0 for j"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        einsum_rule("... (j k) -> i", **options)  # type: ignore[arg-type]
    assert str(caught.value).startswith("making the sharding rule '... (j k) -> i': ")
    assert message.replace("(...)", "...") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shapes", "position", "message"),
    [
        ("i, j -> i", "4 -> 4", 0, "got 1 operands, needed 2, as the notation has"),
        ("i -> i", "4 -> 4, 4", 5, "got 2 results, needed 1, as the notation has"),
        ("i, j k -> i", "4, 4 -> 4", 3, "got operand 1 of shape 4, needed rank 2"),
        ("i -> ... i j", "4 -> 4", 5, "got result 0 of shape 4, needed rank at least 2"),
        (
            "... i -> ... i",
            "2x3x4 -> 2x4",
            9,
            "got result 0 of shape 2x4, needed 2 leading dimensions for ..., as before",
        ),
        ("... i -> ... i", "2x3x4 -> 2x5x4", 9, "needed size 3 in dimension 1, as before"),
        ("i (i2 j) -> i2 j", "2x8 -> 3x4", 2, "got operand 0 of shape 2x8, needed i2=3 * j=4 instead of 8"),
        ("(i j) -> i", "8 -> 3", 0, "got operand 0 of shape 8, needed the size of j"),
        ("(i j) -> (j i)", "6 -> 6", 0, "needed the size of i"),
    ],
)
def test_ops_that_do_not_fit(text: str, shapes: str, position: int, message: str) -> None:
    with pytest.raises(InvalidRuleError) as caught:
        rule(text, shapes)
    assert message in str(caught.value)
    assert isinstance(caught.value, NotationError)
    assert caught.value.position == position


def test_the_missing_size_is_suggested() -> None:
    with pytest.raises(ShardyError, match=r"try: sizes=\{'i': \.\.\.\}"):
        rule("(i j) -> (j i)", "6 -> 6")
