"""Resolving permutation factors and padding make of random programs what the reference makes of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from support.reference import jaxlib_version

from .normal_form import Changes, changes
from .partition_compare import FAMILIES, PARTITION, partition_input
from .partition_programs import NEIGHBOURS, PAD, RESOLVE
from .partition_reasons import MOVED_REVERSE, partition_reason
from .reference_process import ReferenceProcess, Refused
from .reshard_compare import Comparison, Verdict, ours

pytestmark = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="older references have other versions of both passes"
)
SEEDS = range(5)


@pytest.mark.parametrize("family", FAMILIES)
def test_same_as_the_reference(family: str, reference: ReferenceProcess) -> None:
    found, wrong = PARTITION.compare(family, SEEDS, reference)
    assert not wrong, "\n\n".join(wrong)
    assert found["same"] > (0 if family == "strided slice" else len(SEEDS)), found


def test_programs_do_what_they_are_made_for() -> None:
    texts = [partition_input(family, seed, PAD) or "" for family in NEIGHBOURS for seed in range(20)]
    for name in ("sdy.manual_computation", "stablehlo.collective_permute", "sdy.all_gather", "sdy.all_slice"):
        assert any(f'"{name}"' in text for text in texts), name
    padded = []
    for text in filter(None, texts):
        with suppress(Refused):  # shards of a dimension of size 1 that a reshape joins with another one
            padded.append(ours(text, PAD))
    assert len(padded) > 0.9 * len(texts)
    assert any('"stablehlo.select"' in text for text in padded)


@pytest.mark.parametrize(
    ("family", "pipeline", "old", "new"),
    [
        ("pad", RESOLVE[0], "direction GE", "direction GT"),
        ("slice", RESOLVE[0], "<[[0, ", "<[[1, "),
        ("reduce", PAD, "array<i64: 0, ", "array<i64: 1, "),
    ],
)
def test_a_wrong_answer_is_found(family: str, pipeline: str, old: str, new: str, reference: ReferenceProcess) -> None:
    def wrong(text: str, passes: str) -> str:
        return ours(text, passes).replace(old, new)

    _, differences = replace(PARTITION, pipelines=lambda seed: [pipeline]).compare(family, range(12), reference, wrong)
    assert differences


def found(*lines: str) -> Comparison:
    """A difference in these lines of a unified diff."""
    return Comparison(Verdict.DIFFERENT, "\n".join(["--- wanted", "+++ given", *lines]))


def op(sign: str, name: str, more: str = "") -> str:
    return f'{sign}    %1 = "{name}"(%0) {more}'


def test_reasons_explain_every_line_that_differs() -> None:
    gather, pad, select = (
        op("+", name, "tensor<1x1xf32>") for name in ("sdy.all_gather", "stablehlo.pad", "stablehlo.select")
    )
    slices, sine = op("+", "stablehlo.slice"), op("+", "stablehlo.sine")
    strided = "strides = array<i64: 1, 2>"
    collective, scatter = '"sdy.all_to_all"', '"stablehlo.scatter"'
    assert partition_reason(collective, PAD, found(gather, pad)) == "collectives that would move padding"
    assert partition_reason(collective, PAD, found(gather, pad, sine)) is None
    assert partition_reason(collective, PAD, found(pad)) is None
    assert partition_reason("", PAD, found(gather, pad)) is None
    assert partition_reason(scatter, PAD, found(select)) == "masks that the reference leaves out"
    assert partition_reason('"stablehlo.add"', PAD, found(select)) is None
    assert partition_reason(scatter, PAD, found(select, op("-", "stablehlo.sine"))) is None
    swapped = found(op("-", "a.b"), op("-", "a.c"), op("+", "a.c"), op("+", "a.b"))
    assert partition_reason(scatter + strided, PAD, swapped) is None
    both = "collectives that would move padding and masks that the reference leaves out"
    assert partition_reason(scatter + collective, PAD, found(select, gather)) == both
    assert partition_reason(strided, RESOLVE[0], found(slices)) == "slice with a stride"
    assert partition_reason(strided, RESOLVE[0], found(slices, sine)) is None
    assert partition_reason(strided, RESOLVE[1], found(slices)) is None
    assert partition_reason(f"window_{strided}", RESOLVE[0], found(slices)) is None
    joined = '"stablehlo.slice"(%0)\n"stablehlo.concatenate"(%1)'
    assert partition_reason(joined, RESOLVE[0], found(op("+", "stablehlo.concatenate"))) == "concatenated slices"
    reshard = op("+", "sdy.reshard")
    assert partition_reason(f"window_{strided}", RESOLVE[0], found(reshard)) == (
        "convolution that skips a part of its input"
    )
    assert partition_reason("<mesh<", RESOLVE[0], found("mesh_reversed")) == "name of a reversed mesh"
    assert partition_reason(strided, "sdy-close-shardings", found(slices)) is None


@pytest.mark.parametrize(
    ("option", "is_known"),
    [
        ("partitioner-stage=resolve-permutation-factors", True),
        ("inline-meshes=false partitioner-stage=reshard-to-collectives", True),
        ("partitioner-stage=optimize-collectives", True),
        ("partitioner-stage=pad-for-divisibility", False),
        ("partitioner-stage=unspecified", False),
        ("inline-meshes=false", False),
    ],
)
def test_reasons_are_known_where_a_pipeline_resolves_permutation_factors(option: str, is_known: bool) -> None:
    pipeline, strided = f"sdy-export-pipeline{{{option}}}", "strides = array<i64: 1, 2>"
    slices, sine = op("+", "stablehlo.slice"), op("+", "stablehlo.sine")
    assert partition_reason(strided, pipeline, found(slices)) == ("slice with a stride" if is_known else None)
    assert partition_reason(strided, pipeline, found(slices, sine)) is None
    assert partition_reason("", pipeline, found(slices)) is None
    refused = "given  accepted\nwanted refused: -:1:1: "
    assert partition_reason(strided, pipeline, Comparison(Verdict.DIFFERENT, f"{refused}anything")) is None
    pads = Comparison(Verdict.DIFFERENT, f"{refused}'stablehlo.pad' op inferred type(s) differ")
    known = "refused by the reference: pad that also pads within shards"
    assert partition_reason("", pipeline, pads) == (known if is_known else None)


def test_numbers_of_values_make_no_difference() -> None:
    one, other = '    %1 = "a.b"(%0) loc(#loc1)', '    %2 = "a.b"(%1) loc(#loc3)'
    assert changes(found(f"-{one}", f"+{other}").details) == Changes((), ())
    assert changes(found(f"-{one}", f"+{other}", f"+{one}").details) == Changes((), ('= "a.b"()',))
    assert changes(found(f"-{one}", f"+{other}x").details) != Changes((), ())


@pytest.mark.parametrize("pipeline", [RESOLVE[0], PAD, "symbol-dce"])
def test_what_the_reference_refuses_is_known_by_its_words(pipeline: str) -> None:
    def reason(message: str) -> str | None:
        return partition_reason(
            "", pipeline, Comparison(Verdict.DIFFERENT, f"given  accepted\nwanted refused: {message}")
        )

    cast = "found unrealized_conversion_cast after pad-for-divisibility"
    is_known = pipeline != "symbol-dce"
    assert reason(cast) == ("refused by the reference: padding that is left to a cast" if is_known else None)
    assert reason("anything else") is None


REVERSES = """sdy.mesh @m = <["a"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}) {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<8xf32>
  %1 = stablehlo.reverse %x, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}]>]>} : tensor<8xf32>
  %2 = stablehlo.negate %x : tensor<8xf32>
  return
}"""


@pytest.mark.parametrize(("line", "is_known"), [(3, True), (4, False), (5, False)])
def test_only_reverses_without_a_sharding_excuse_reshards_without_one(line: int, is_known: bool) -> None:
    def reason(message: str, pipeline: str = RESOLVE[0]) -> str | None:
        return partition_reason(REVERSES, pipeline, Comparison(Verdict.DIFFERENT, f"given  accepted\nwanted {message}"))

    message = f"refused: -:{line}:8: 'sdy.reshard' op requires attribute 'sharding'"
    known = "refused by the reference: reverse whose result has no sharding"
    assert reason(message) == (known if is_known else None)
    assert reason(message, PAD) is None
    assert reason(message.replace("sdy.reshard", "sdy.all_gather")) is None


def test_refusals_at_other_ops_are_known_however_long_the_message_is() -> None:
    def reason(given: str, wanted: str, pipeline: str = PAD) -> str | None:
        return partition_reason("", pipeline, Comparison(Verdict.DIFFERENT, f"given  {given}\nwanted {wanted}"))

    assert reason("-:1:2: no\n  at -:1:2", "-:3:4: no") == "refused at another op"
    assert reason("-:1:2: no\n  at -:1:2", "accepted") is None
    assert reason("accepted", "refused: -:3:4: no") is None
    assert reason("-:1:2: no", "-:3:4: no", RESOLVE[0]) is None


def test_only_the_sharding_of_a_trimmed_reverse_may_differ() -> None:
    def trim(sign: str, sharding: str, limit: int = 5, start: int = 0) -> str:
        bounds = f"limit_indices = array<i64: {limit}>, start_indices = array<i64: {start}>, strides = array<i64: 1>"
        given = f"sdy.sharding = #sdy.sharding_per_value<[<@m, [{sharding}]>]>"
        return f'{sign}    %1 = "stablehlo.slice"(%0) <{{{bounds}}}> {{{given}}} : (tensor<6xf32>) -> tensor<5xf32>'

    sharded = trim("", '{"b"}').partition("}> ")[2]
    text = f'"stablehlo.reverse"(%0) <{{dimensions = array<i64: 0>}}> {sharded}'
    ours, theirs = trim("+", '{"b"}'), trim("-", '{"a"}')
    assert partition_reason(text, RESOLVE[0], found(theirs, ours)) == MOVED_REVERSE
    assert partition_reason(text, PAD, found(theirs, ours)) is None
    assert partition_reason(text.replace("reverse", "negate"), RESOLVE[0], found(theirs, ours)) is None
    assert partition_reason(text, RESOLVE[0], found(trim("-", '{"b"}'), trim("+", '{"a"}'))) is None
    assert partition_reason(text, RESOLVE[0], found(theirs, trim("+", '{"b"}', limit=4))) is None
    assert partition_reason(text, RESOLVE[0], found(theirs, trim("+", '{"b"}', start=1))) is None
    assert partition_reason(text, RESOLVE[0], found(theirs, ours, op("+", "stablehlo.sine"))) is None
    assert partition_reason(text, RESOLVE[0], found(theirs, ours, ours)) is None
    strided = f"{text}\nstrides = array<i64: 2>"
    both = f"{MOVED_REVERSE} and slice with a stride"
    assert partition_reason(strided, RESOLVE[0], found(theirs, ours, op("+", "stablehlo.concatenate"))) == both


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert PARTITION.run("", ["--modules", "2", "--first-seed", "1", "--families", "slice", "pad"]) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()[:2]] == ["slice", "pad"]
