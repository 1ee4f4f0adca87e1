"""Names that stand for many inputs, and inputs without their shardings."""

from __future__ import annotations

import pyshardy
from pyshardy.searching.planning.ports import _patterns, without_shardings

from ...api.test_search import PROGRAM


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
