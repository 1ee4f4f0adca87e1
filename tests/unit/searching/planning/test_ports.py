"""The order of plans, and names that stand for many inputs."""

from __future__ import annotations

from dataclasses import replace

import pyshardy
from pyshardy.report.plan import PlanRow
from pyshardy.searching.planning.options import rank
from pyshardy.searching.planning.ports import _patterns, without_shardings

from ...api.test_search import PROGRAM


def row() -> PlanRow:
    """A row of a plan as a search makes it."""
    return pyshardy.search(PROGRAM, hardware="h100").summary.rows[0]


def test_what_fits_comes_first_then_what_is_fast_then_what_is_small() -> None:
    one = replace(row(), fits=True, seconds=1.0, bytes=100)
    best, *others = ranked = [
        replace(one, bytes=50),
        one,
        replace(one, seconds=2.0, bytes=1),
        replace(one, fits=False, seconds=0.5, bytes=200),
        replace(one, fits=False, seconds=0.1, bytes=300),
    ]
    assert sorted([*others, best], key=rank) == ranked


def test_layers_share_a_pattern_only_if_all_of_them_are_meant() -> None:
    names = ["layers[0].w", "layers[1].w", "layers[2].w", "head"]
    assert _patterns(names[:3], names) == [("layers[*].w", 3)]
    assert _patterns(names[:2], names) == [("layers[0].w", 1), ("layers[1].w", 1)]
    numbered = ["opt[0]['layer_0']['w']", "opt[0]['layer_1']['w']", "opt[1]['layer_0']['w']"]
    assert _patterns(numbered[:2], numbered) == [("opt[0]['layer_*']['w']", 2)]
    assert _patterns(["head"], names) == [("head", 1)]
    assert _patterns([], names) == []


def test_shardings_that_are_not_kept_go() -> None:
    module = pyshardy.annotate(pyshardy.load(PROGRAM), {"arg0": "x", "arg1": "x"})

    def sharded(kept: pyshardy.Module) -> list[bool]:
        return ["sdy.sharding" in part for part in kept.text().split("@main(")[1].split("->")[0].split("%arg1")]

    assert sharded(without_shardings(module, True)) == [True, True]
    assert sharded(without_shardings(module, False)) == [False, False]
    assert sharded(without_shardings(module, ["arg1"])) == [False, True]
