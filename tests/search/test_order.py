"""How pairs of plans are counted whose order is known from compilers, which `python -m search.order` asks."""

from __future__ import annotations

from search.order import Both, chosen, pairs, table
from search.written import Way

import pyshardy


def test_pairs_in_the_wrong_order_are_seen() -> None:
    right = [Both(1.0, 10.0), Both(2.0, 20.0), Both(3.0, 30.0)]
    assert pairs(right) == (3, 3)
    assert pairs([Both(-one.own, one.compiled) for one in right]) == (0, 3)
    assert pairs([Both(1.0, one.compiled) for one in right]) == (0, 3)  # our figures have no order at all


def test_pairs_without_an_order_do_not_count() -> None:
    assert pairs([Both(1.0, 100.0), Both(2.0, 102.0)]) == (0, 0)
    assert pairs([Both(1.0, 0.0), Both(2.0, 0.0)]) == (0, 0)


def test_plans_are_spread_from_the_fastest_to_the_slowest() -> None:
    module = pyshardy.load("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    ways = [Way(str(number), module, 1.0 + number // 2) for number in range(20)]
    found = [way.seconds for way in chosen(ways, 4)]
    assert found == [1.0, 4.0, 7.0, 10.0]
    assert len(chosen(ways[:3], 4)) == 2


def test_the_table_sums_up_what_it_counts() -> None:
    plans = [{"sent": Both(n, n), "peak": Both(-n, n), "seconds": Both(n, 1.0)} for n in (1.0, 2.0)]
    last = table([("a", "v5e", plans), ("b", "h100", plans)]).splitlines()[-1]
    assert last == "| **all** |  | 4 | **2 of 2** | **0 of 2** | **0 of 0** |"
