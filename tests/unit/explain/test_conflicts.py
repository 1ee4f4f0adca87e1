"""Where shardings meet and one loses, and what the collectives that follow are said to be for."""

from __future__ import annotations

import json

import pytest

import pyshardy
from pyshardy import Partition, Propagation
from pyshardy.explain.mismatches import mismatches
from pyshardy.ir.module import Module
from pyshardy.results.hints.edits import device_work

HEAD = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'
BATCH = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
ROWS = '{sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}'
COLUMNS = '{sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}'


def product(first: str, second: str, result: str = "") -> Module:
    """A product of two matrices with these annotations."""
    tensor = "tensor<64x64xf32>"
    return pyshardy.load(f"""{HEAD}
func.func public @main(%a: {tensor} {first} loc("a"), %b: {tensor} {second} loc("b")) -> ({tensor} {result}) {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : ({tensor}, {tensor}) -> {tensor} loc("jit(f)/mlp/dot_general"("model.py":7:4))
  return %0 : {tensor}
}}""")


def test_no_conflict() -> None:
    found = pyshardy.propagate(product(BATCH, COLUMNS)).conflicts()
    assert len(found) == 0
    assert str(found) == "no conflicts: all shardings that meet agree"


def test_a_conflict_names_loser_and_winner() -> None:
    split = '{sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}'
    found = pyshardy.propagate(product(BATCH, split)).conflicts()
    (row,) = found
    assert (row.loser, row.has, row.needs, row.winner) == ("`b`", '[{}, {"x"}]', "[{}, {}]", "`a`")
    assert (row.op, row.scope, row.file, row.line) == (
        "stablehlo.dot_general", "jit(f)/mlp/dot_general", "model.py", 7
    )  # fmt: skip
    assert row.bytes_per_device == 64 * 32 * 4
    assert row.text == (
        '`b` is [{}, {"x"}], and `dot_general` in `mlp` at model.py:7 needs it as [{}, {}], '
        'because `a` is [{"x"}, {}] (8.0 KiB per device)'
    )


def test_an_output_that_is_to_be_whole_wins() -> None:
    whole = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
    (row,) = pyshardy.propagate(product(BATCH, COLUMNS, whole)).conflicts()
    assert (row.op, row.winner) == ("func.return", "`result`")
    assert row.text.startswith('the result of `dot_general` in `mlp` at model.py:7 is [{"x"}, {"y"}], and the output')


def test_conflicts_come_by_bytes() -> None:
    split = '{sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}'
    whole = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
    found = pyshardy.propagate(product(BATCH, split, whole)).conflicts()
    sizes = [row.bytes_per_device for row in found]
    assert len(sizes) > 1
    assert sizes == sorted(sizes, reverse=True)
    assert json.loads(json.dumps(found.to_json()))["conflicts"][0]["bytes_per_device"] == sizes[0]


def test_a_constraint_that_moves_a_value() -> None:
    module = pyshardy.load(f"""{HEAD}
func.func @main(%a: tensor<8x8xf32> {BATCH} loc("a")) -> tensor<8x8xf32> {{
  %0 = sdy.sharding_constraint %a <@mesh, [{{}}, {{"y"}}]> : tensor<8x8xf32> loc("model.py":2:1)
  return %0 : tensor<8x8xf32>
}}""")
    (row,) = pyshardy.propagate(module).conflicts()
    assert row.text.startswith('`a` is [{"x"}, {}], and the `sharding_constraint` at model.py:2 says [{}, {"y"}]')


@pytest.fixture(scope="module")
def gathered() -> Partition:
    whole = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
    return pyshardy.partition(product(BATCH, COLUMNS, whole))


def test_bytes_of_a_conflict_are_those_of_its_collective(gathered: Partition) -> None:
    (row,), (story,) = gathered.propagated.conflicts(), gathered.collectives
    assert row.bytes_per_device == story.total_bytes > 0


def test_a_collective_names_its_operand_and_both_sides(gathered: Partition) -> None:
    (story,) = gathered.collectives
    assert story.operand == "the result of `dot_general` in `mlp` at model.py:7"
    assert [(side.axis, side.origin) for side in story.sides] == [
        ('"x"', "to the input `a` on dimension 0"), ('"y"', "to the input `b` on dimension 1")
    ]  # fmt: skip
    assert str(story).endswith(
        'There "x" was given to the input `a` on dimension 0; "y" was given to the input `b` on dimension 1.'
    )
    assert json.loads(json.dumps(story.to_json()))["kind"] == "all_gather"


def test_a_sum_names_the_dimensions_that_are_split() -> None:
    (story,) = pyshardy.partition(product(COLUMNS, ROWS)).collectives
    assert story.kind == "all_reduce"
    assert story.reason == (
        "`dot_general` in `mlp` at model.py:7 takes the sum over a dimension that is split: "
        '`a` has "y" on dimension 1 and `b` has "y" on dimension 0'
    )


def test_a_hint_keeps_what_it_promises(gathered: Partition) -> None:
    (story,) = gathered.hints()
    assert story.hint is not None
    assert story.hint.startswith("annotate `result` as P('x', 'y') instead of P(): ")
    split = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}'
    then = pyshardy.partition(product(BATCH, COLUMNS, split))
    assert f"send {then.traffic.sent_bytes_per_device} B per device instead of" in story.hint
    assert str(story).endswith(f"Hint: {story.hint}")


def test_no_hint_lets_every_device_compute_everything() -> None:
    partition = pyshardy.partition(product(COLUMNS, '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'))
    assert partition.collectives
    for story in partition.hints():
        assert story.hint is not None
        assert "[*]" not in story.hint
    whole = pyshardy.partition(product("", ""))
    assert device_work(whole.module.root) > device_work(partition.module.root)


@pytest.mark.parametrize(
    ("name", "as_one"),
    [
        ("params['layers'][{}]['w']", "`params['layers'][*]['w']`"),
        ("params['block_{}']['Dense_0']['w']", "`params['block_*']['Dense_0']['w']`"),
    ],
)
def test_layers_are_told_as_one(name: str, as_one: str) -> None:
    tensor = "tensor<64x64xf32>"
    arguments = ", ".join(f'%w{n}: {tensor} {ROWS} loc("{name.format(n)}")' for n in range(3))
    ops = "\n".join(
        f"""  %h{n} = stablehlo.tanh %{n} : {tensor} loc("jit(f)/mlp/tanh"("model.py":6:4))
  %{n + 1} = stablehlo.dot_general %h{n}, %w{n}, contracting_dims = [1] x [0]
    : ({tensor}, {tensor}) -> {tensor} loc("jit(f)/mlp/dot_general"("model.py":7:4))"""
        for n in range(3)
    )
    module = pyshardy.load(
        f"{HEAD}func.func @main({arguments}, %0: {tensor}) -> {tensor} {{\n{ops}\n return %3 : {tensor}\n}}"
    )
    stories = pyshardy.partition(module).collectives
    (story,) = [one for one in stories if one.times > 1]
    assert as_one in story.reason
    assert story.text.count(as_one) == 2  # in the reason, and where its axis was given


def test_a_place_in_a_library_is_told_by_the_line_of_the_user() -> None:
    calls = 'callsite("/v/site-packages/flax/linear.py":287:8 at "train.py":31:4)'
    text = f"""{HEAD}
func.func @main(%a: tensor<8x8xf32> {COLUMNS}, %b: tensor<8x8xf32> {ROWS}) -> tensor<8x8xf32> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("jit(f)/mlp/dot_general"({calls}))
  return %0 : tensor<8x8xf32>
}}"""
    (story,) = pyshardy.partition(text).collectives
    assert "`dot_general` in `mlp` at train.py:31" in story.reason
    assert (story.file, story.line) == ("train.py", 31)


SLICED = f"""{HEAD}
func.func @main(%a: tensor<8x48xf32> {COLUMNS} loc("a")) -> tensor<8x16xf32> {{
  %0 = stablehlo.slice %a [0:8, 16:32] : (tensor<8x48xf32>) -> tensor<8x16xf32> loc("split"("model.py":3:1))
  %1 = stablehlo.tanh %0 : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}}"""


def test_a_slice_says_what_keeps_its_pieces_where_they_are() -> None:
    stories = pyshardy.partition(SLICED).collectives
    assert stories
    assert all("its piece does not begin and end where shards do" in one.reason for one in stories)
    assert all("pieces along a dimension of their own, as in [8, 3, 16], stay" in one.reason for one in stories)
    pieces = pyshardy.partition(SLICED.replace("16:32", "16:36").replace("8x16xf32", "8x20xf32")).collectives
    assert pieces and all("dimension of their own" not in one.reason for one in pieces)


@pytest.mark.parametrize(
    ("given", "end"),
    [
        ("", "is to be [{}], because inputs and outputs have shards of one size"),
        ("{sdy.sharding = #sdy.sharding<@mesh, [{}]>}", "is to be [{}]"),
    ],
)
def test_an_output_says_why_it_is_otherwise_unless_its_user_said_so(given: str, end: str) -> None:
    module = pyshardy.load(f"""{HEAD}
func.func @main(%a: tensor<6xf32> loc("a")) -> (tensor<6xf32> {given}) {{
  %0 = sdy.sharding_constraint %a <@mesh, [{{"y"}}]> : tensor<6xf32>
  %1 = stablehlo.tanh %0 : tensor<6xf32>
  return %1 : tensor<6xf32>
}}""")
    texts = [one.text.split(" (")[0] for one in pyshardy.propagate(module).conflicts()]
    assert any(one.endswith(end) for one in texts), texts


def test_every_meeting_of_a_program_costs_what_partitioning_sends() -> None:
    split = '{sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}'
    module = product(BATCH, split)
    result: Propagation = pyshardy.propagate(module)
    told = sum(one.bytes_per_device for one in mismatches(result.why))
    assert told == pyshardy.partition(module).traffic.sent_bytes_per_device
