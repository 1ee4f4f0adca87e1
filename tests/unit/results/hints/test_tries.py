"""Other annotations are partitioned as often as they have to be, and no more."""

from __future__ import annotations

from typing import Any

import pytest

import pyshardy
from pyshardy import Partition
from pyshardy.core.notation import parse_sharding
from pyshardy.costing.chips import find_hardware
from pyshardy.errors import UsageError
from pyshardy.results.edit import edited_result
from pyshardy.results.hints import ways as hinting
from pyshardy.results.hints.edits import MOST_EDITS, AnnotationEdit, Trial, is_better
from pyshardy.results.hints.tries import Tries, _key

TENSOR = "tensor<64x64xf32>"


def layers(count: int) -> Partition:
    """Layers whose weights are split along the axis of the batch, as for FSDP; each has other names and lines."""
    split = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    weights = ", ".join(f'%w{n}: {TENSOR} {split} loc("weight{chr(97 + n)}")' for n in range(count))
    ops = "\n".join(
        f"""  %{n + 1} = stablehlo.dot_general %{n}, %w{n}, contracting_dims = [1] x [0]
    : ({TENSOR}, {TENSOR}) -> {TENSOR} loc("jit(f)/mlp{chr(97 + n)}/dot_general"("model.py":{n + 1}:4))"""
        for n in range(count)
    )
    return pyshardy.partition(f"""sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func public @main(%0: {TENSOR} {split} loc("batch"), {weights}) -> {TENSOR} {{
{ops}
  return %{count} : {TENSOR}
}}""")


def edit(place: int, text: str) -> AnnotationEdit:
    """Another annotation of one input."""
    return AnnotationEdit(True, (place,), parse_sharding(f"<@mesh, {text}>"))


def whole(partition: Partition, *places: int) -> Partition:
    """The program with some inputs whole, annotated and partitioned from the start."""
    names = {partition.inputs[place].name: "None,None" for place in places}
    return pyshardy.partition(partition.before.annotate(names))


@pytest.fixture(scope="module")
def program() -> Partition:
    return layers(2)


def test_a_try_costs_what_the_program_does_with_that_annotation(program: Partition) -> None:
    found = Tries(program)(edit(1, "[{}, {}]"))
    then = whole(program, 1)
    assert found is not None
    assert (found.sent_bytes, found.held_bytes) == (then.traffic.sent_bytes_per_device, then.bytes_per_device)
    assert found.sent_bytes < program.traffic.sent_bytes_per_device


def test_equal_shardings_are_partitioned_once(program: Partition) -> None:
    found = Tries(program)
    first = found(edit(1, "[{}, {}]"))
    assert found(edit(1, "[{}, {}]")) is first
    assert found(edit(1, "[{?}, {}]")) is first  # nothing propagates there
    assert found.partitioned == 1
    assert found(edit(2, "[{}, {}]")) is not first
    assert found.partitioned == 2


def test_an_annotation_that_cannot_be_partitioned_is_no_better(
    program: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Tries, found: Partition) -> Trial | None:
        raise UsageError("partitioning", got="this", needed="another")

    monkeypatch.setattr(Tries, "_better", refuse)
    found = Tries(program)
    assert [found(edit(1, "[{}, {}]")), found(edit(1, "[{?}, {}]"))] == [None, None]
    assert found.partitioned == 1


def test_an_annotation_that_changes_nothing_is_not_partitioned(program: Partition) -> None:
    found = Tries(program)
    assert found(edit(1, '[{"x"}, {}]')) is None
    assert found(edit(1, '[{"x"}, {?}]')) is None
    assert found.partitioned == 0


def test_a_program_that_is_an_edit_is_compared_with_itself(program: Partition) -> None:
    edited = program.edit({"weighta": "None,None"}).result
    found = Tries(edited)
    assert found(edit(1, "[{}, {}]")) is None
    assert found.partitioned == 0
    back = found(edit(1, '[{"x"}, {}]'))
    assert (back, found.partitioned) == (None, 1)  # it sends more again


@pytest.mark.parametrize(
    "texts", [("[{}, {}]", "[{?}, {}]"), ('[{"y"}, {}]', '[{"y"}, {?}]'), ("[{?}, {?}]", "[{}, {?}]")]
)
def test_equal_keys_are_equal_programs(program: Partition, texts: tuple[str, str]) -> None:
    same = []
    for place in range(3):
        made = [edited_result(program, [("arg_attrs", place, edit(place, text).sharding)]) for text in texts]
        states = [one.state for one in made]
        assert all(states)
        keys = [_key(state) for state in states if state is not None]
        modules = [one.result.module.text() for one in made]
        same.append(keys[0] == keys[1])
        assert same[-1] <= (modules[0] == modules[1])
    assert any(same)


@pytest.mark.parametrize(("count", "most"), [(1, 3), (3, 1), (3, 3), (6, 2)])
def test_hints_partition_a_bounded_number_of_times(count: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Tries] = []

    class Counted(Tries):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    partition = layers(count)
    monkeypatch.setattr(hinting, "Tries", Counted)
    hints = partition.hints(most)
    (used,) = made
    assert 0 < len(hints) <= most
    assert 0 < used.partitioned <= min(most, count) * MOST_EDITS
    assert used.partitioned < len(used._edits)  # some need no partitioning


def test_hints_say_which_chip_holds_what_they_say() -> None:
    partition = layers(1)
    (on_none,), (on_chip,) = partition.hints(1), partition.hints(1, "h100")
    assert on_none.hint is not None and on_none.hint.endswith("at most instead of 40.0 KiB, on no chip in particular.")
    assert on_chip.hint is not None and on_chip.hint.endswith(", on NVIDIA H100 SXM.")
    now = Tries(partition, find_hardware("h100")).now
    assert now.held_bytes == pyshardy.cost(partition, "h100").peak_bytes
    with pytest.raises(UsageError, match="abacus"):
        partition.hints(1, "abacus")


def test_the_largest_conflicts_come_first() -> None:
    partition = layers(3)
    sizes = [story.total_bytes for story in partition.hints(9)]
    assert sizes == sorted(sizes, reverse=True)
    assert [one.reason for one in partition.hints(1)] == [one.reason for one in partition.hints(9)][:1]


@pytest.mark.parametrize(
    ("sent", "work", "expected"), [(9, 100, True), (10, 1, False), (9, 105, True), (9, 106, False), (11, 1, False)]
)
def test_better_is_less_traffic_for_no_more_work(sent: int, work: float, expected: bool) -> None:
    assert is_better(sent, work, Trial(10, 0, 100, (), ())) is expected
