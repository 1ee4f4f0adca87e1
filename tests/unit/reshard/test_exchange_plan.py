"""Plans bring every shard what it needs, in as few rounds as pieces at the busiest shard."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyshardy.reshard.exchange_plan import BufferSpan, ExchangePlan, Holding, Piece, Round, plan_exchange

_NOTHING = -1


def _cut(borders: list[int]) -> tuple[BufferSpan, ...]:
    return tuple(BufferSpan(first, first, end) for first, end in zip(borders, borders[1:]))


def _follow(plan: ExchangePlan, held: tuple[BufferSpan, ...], wanted: tuple[BufferSpan, ...]) -> list[list[int]]:
    """What is in the buffers of all shards in the end, by the numbers of places."""
    buffers = [[_NOTHING] * max(0, span.end - span.origin) for span in wanted]
    for round_ in (*plan.kept, *plan.rounds):
        assert len({piece.source for piece in round_.pieces}) == len(round_.pieces)
        assert len({piece.target for piece in round_.pieces}) == len(round_.pieces)
        assert round_.size == max(piece.size for piece in round_.pieces)
        for source, target, start, target_start, size in round_.pieces:
            for number in range(size):
                assert buffers[target][target_start + number] == _NOTHING
                buffers[target][target_start + number] = held[source].origin + start + number
    return buffers


@given(st.data(), st.integers(1, 7))
def test_every_shard_gets_what_it_needs(data: st.DataObject, shards: int) -> None:
    borders = st.lists(st.integers(0, 40), min_size=shards + 1, max_size=shards + 1)
    held, wanted = _cut(sorted(data.draw(borders))), _cut(sorted(data.draw(borders)))
    plan = plan_exchange([Holding(held)], wanted)
    low, high = held[0].first, held[-1].end
    expected = [
        [place if low <= place < high else _NOTHING for place in range(span.first, span.end)] for span in wanted
    ]
    assert _follow(plan, held, wanted) == expected
    assert all(piece.source == piece.target for round_ in plan.kept for piece in round_.pieces)
    assert all(piece.source != piece.target for round_ in plan.rounds for piece in round_.pieces)


def test_a_wrong_plan_is_noticed() -> None:
    held = wanted = _cut([0, 2, 4])
    wrong = ExchangePlan((Round(2, (Piece(0, 1, 0, 0, 2), Piece(1, 0, 0, 0, 2))),), ())
    assert _follow(wrong, held, wanted) == [[2, 3], [0, 1]]


def test_what_all_hold_stays() -> None:
    plan = plan_exchange([Holding((BufferSpan(0, 0, 8),) * 4)], _cut([0, 2, 4, 6, 8]))
    assert plan.rounds == ()
    assert [(piece.source_start, piece.size) for piece in plan.kept[0].pieces] == [(0, 2), (2, 2), (4, 2), (6, 2)]


def test_large_pieces_are_cut_where_they_would_fill_several_rounds() -> None:
    """Borders drift by one element per shard: first the own part is large, then that of the neighbour."""
    shards, size = 64, 64
    plan = plan_exchange(
        [Holding(_cut([size * shard for shard in range(shards + 1)]))],
        _cut([(size + 1) * shard for shard in range(shards + 1)]),
    )
    assert len(plan.rounds) <= 5
    assert plan.sent <= 3 * size // 2
