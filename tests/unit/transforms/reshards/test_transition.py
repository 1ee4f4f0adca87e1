from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op
from pyshardy.transforms.reshards.transition import ANY_KIND, NO_KIND, Kinds, check_transition

MESHES = {"m": Mesh([("a", 4), ("b", 2)]), "n": Mesh([("a", 4), ("b", 2)], range(7, -1, -1))}
SUM: Kinds = frozenset({ReductionKind.SUM})
EXTREME: Kinds = frozenset({ReductionKind.MAX, ReductionKind.MIN})
NONE, ON_A, ON_B, MAX_A = "[{}]", '[{}], unreduced={"a"}', '[{}], unreduced={"b"}', '[{}], unreduced=max{"a"}'
HALF_A, BOTH = '[{}], unreduced={"a":(1)2}', '[{}], unreduced={"a", "b"}'
GIVES, DROPS = "gives partial results", "drops the unreduced axes of its operands"
DROPS_HINT = "which this op cannot; only a reshard, an all-reduce or a reduce-scatter may"


def sharding(text: str | None) -> TensorSharding | None:
    return None if text is None else parse_sharding(text if text.startswith("<") else f"<@m, {text}>")


def check(sources: list[str | None], results: list[str | None], may_add: Kinds, may_drop: Kinds) -> None:
    check_transition(Op("t.op"), map(sharding, sources), map(sharding, results), MESHES, may_add, may_drop)


ACCEPTED = [
    ([], [], NO_KIND, NO_KIND),
    ([None], [None], NO_KIND, NO_KIND),
    ([NONE], [NONE], NO_KIND, NO_KIND),
    ([ON_A], [ON_A], NO_KIND, NO_KIND),
    ([MAX_A], [MAX_A], NO_KIND, NO_KIND),
    ([ON_A, NONE], [ON_A], NO_KIND, NO_KIND),
    ([ON_A, ON_B], [BOTH], NO_KIND, NO_KIND),
    ([BOTH], [ON_A, ON_B], NO_KIND, NO_KIND),
    ([NONE], [ON_A], SUM, NO_KIND),
    ([NONE], [MAX_A], ANY_KIND, NO_KIND),
    ([ON_A], [NONE], NO_KIND, SUM),
    ([MAX_A], [ON_B], SUM, EXTREME),
    ([BOTH], [HALF_A], NO_KIND, SUM),
    (["<@n, " + ON_A + ">"], [ON_B], NO_KIND, NO_KIND),
    ([ON_A, "<@n, " + ON_A + ">"], [NONE], NO_KIND, NO_KIND),
    ([MAX_A], [ON_B], SUM, ANY_KIND),
]


@pytest.mark.parametrize(("sources", "results", "may_add", "may_drop"), ACCEPTED)
def test_accepted(sources: list[str | None], results: list[str | None], may_add: Kinds, may_drop: Kinds) -> None:
    check(sources, results, may_add, may_drop)


REFUSED = [
    ([NONE], [ON_A], NO_KIND, NO_KIND, f'{GIVES} along "a", which this op cannot'),
    ([None], [ON_A], NO_KIND, NO_KIND, f'{GIVES} along "a", which this op cannot'),
    ([HALF_A], [ON_A], NO_KIND, NO_KIND, f'{GIVES} along "a":(2)2, which this op cannot'),
    ([ON_A], [BOTH], NO_KIND, ANY_KIND, f'{GIVES} along "b", which this op cannot'),
    ([NONE], [ON_A], EXTREME, NO_KIND, f'{GIVES} along "a" combined by sum, needed max or min'),
    ([NONE], [MAX_A], SUM, NO_KIND, f'{GIVES} along "a" combined by max, needed sum'),
    ([ON_A], [NONE], NO_KIND, NO_KIND, f'{DROPS} along "a", {DROPS_HINT}'),
    ([ON_A], [None], NO_KIND, NO_KIND, f'{DROPS} along "a", {DROPS_HINT}'),
    ([ON_A], [HALF_A], ANY_KIND, NO_KIND, f'{DROPS} along "a":(2)2, {DROPS_HINT}'),
    ([ON_A], [ON_B], SUM, NO_KIND, f'{DROPS} along "a", {DROPS_HINT}'),
    ([MAX_A], [NONE], NO_KIND, SUM, f'{DROPS} along "a" combined by max, needed sum'),
    ([ON_B, MAX_A], [ON_B], NO_KIND, SUM, f'{DROPS} along "a" combined by max, needed sum'),
    ([ON_A], [MAX_A], ANY_KIND, ANY_KIND, "keeps unreduced axes but changes how they combine, from sum to max"),
    (
        [ON_B, MAX_A],
        [ON_B, HALF_A],
        ANY_KIND,
        ANY_KIND,
        "keeps unreduced axes but changes how they combine, from max to sum",
    ),
]


@pytest.mark.parametrize(("sources", "results", "may_add", "may_drop", "message"), REFUSED)
def test_refused(
    sources: list[str | None], results: list[str | None], may_add: Kinds, may_drop: Kinds, message: str
) -> None:
    with pytest.raises(PassError) as caught:
        check(sources, results, may_add, may_drop)
    assert caught.value.diagnostic.message == f"'t.op' op {message}"


def test_an_unknown_mesh_is_refused() -> None:
    with pytest.raises(InvalidShardingError, match="unknown mesh @x"):
        check(["<@x, [{}]>"], [NONE], NO_KIND, NO_KIND)
