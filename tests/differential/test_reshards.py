from __future__ import annotations

from collections import Counter

import pytest

from support.reference import jaxlib_version

from .reference_process import Died, ReferenceProcess, Refused
from .reshard_campaign import comparisons, main
from .reshard_compare import FATAL, INVALID, Comparison, Verdict, compare, ours, shards_by_incompatible_parts
from .reshard_programs import CANONICALIZE, DEVICES, FAMILIES, FUSE, INSERT, OLD_STYLES, STYLES

IS_OLD = jaxlib_version() < (0, 12)
PER_FAMILY = 38
MORE = {"plans": 200, "odd plans": 200, "permutations": 150, "fused": 100}
"""Families of small modules with one kind of thing in them: more of these."""


def _pipelines(family: str) -> list[str]:
    """The pipelines to compare.

    A reference before 0.12 does not know sdy-verify-unreduced-axes and the option to mark partial results. Its
    full version has other rules for reshapes, reshards those with overflow otherwise, takes every reduction for
    a sum, and does not know the edges of stablehlo.if; so it is compared where none of these occur. It plans
    collectives in two rounds, whatever the padding, and does not optimize them.
    """
    own = FAMILIES[family][1]
    if not IS_OLD:
        return list(own)
    known = (*FUSE, *CANONICALIZE, *(INSERT[:2] if family in ("product", "unreduced") else INSERT[:1]))
    return [pipeline for pipeline in own if pipeline in known]


@pytest.mark.parametrize("family", FAMILIES)
def test_same_as_the_reference(family: str, reference: ReferenceProcess) -> None:
    pipelines = _pipelines(family)
    if not pipelines:
        pytest.skip("this reference has none of the passes, or has them otherwise")
    styles = OLD_STYLES if IS_OLD else STYLES
    found: Counter[Verdict] = Counter()
    different = []
    count = MORE.get(family, PER_FAMILY)
    for seed, pipeline, outcome in comparisons(family, range(count), reference, styles, pipelines):
        found[outcome.verdict] += 1
        if outcome.verdict is Verdict.DIFFERENT:
            different.append(f"{family} {seed} {pipeline}\n{outcome.details}")
    assert not different, "\n\n".join(different)
    assert found[Verdict.SAME] > 0.7 * count * len(pipelines), found


@pytest.mark.skipif(IS_OLD, reason="made for the newest reference")
def test_programs_do_what_they_are_made_for() -> None:
    """Each family gives rise to ops that it is there for."""
    wanted = {
        "chain": ("sdy.reshard", "sdy.all_reduce"),
        "single": ("sdy.reshard", "sdy.all_reduce"),
        "special": ("sdy.reshard", "sdy.all_reduce"),
        "unreduced": ("sdy.replicated_to_unreduced", "sdy.sharded_to_unreduced"),
        "collectives": ("sdy.reduce_scatter", "sdy.all_to_all"),
        "devices": ("stablehlo.if", "stablehlo.partition_id", "sdy.all_reduce"),
        "to the end": ("sdy.all_gather", "sdy.all_slice"),
    }
    for family, names in wanted.items():
        make, pipelines = FAMILIES[family]
        pipeline = next((one for one in (INSERT[1], DEVICES[0]) if one in pipelines), pipelines[-1])
        text = ""
        for seed in range(20):
            try:
                text += ours(make(seed, STYLES), pipeline)
            except Refused:
                continue
        assert all(name in text for name in names), family
    for family, changed in {
        "plans": "sdy.reshard",
        "permutations": "sdy.collective_permute",
        "fused": "sdy.all_gather",
    }.items():
        make, pipelines = FAMILIES[family]
        texts = [make(seed, STYLES) for seed in range(20)]
        assert sum(ours(text, pipelines[0]).count(changed) for text in texts) < sum(
            text.count(changed) for text in texts
        )
    products = [FAMILIES["product"][0](seed, STYLES) for seed in range(60)]
    assert any("sdy.reshard" in ours(product, INSERT[0]) for product in products)


# The comparison itself

MODULE = """sdy.mesh @m = <["a"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}"""


def _refuse(place: str) -> str:
    raise Refused(f"{place}: no")


def _with(given: str, wanted: str) -> Comparison:
    """The comparison of two answers; `refused at ...` stands for a refusal."""

    def answer(text: str) -> str:
        return _refuse(text.removeprefix("refused at ")) if text.startswith("refused at ") else text

    return compare("", "", lambda *_: answer(wanted), lambda *_: answer(given))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("one", "other"), ("one", "refused at x"), ("refused at x", "one"), ("refused at x", "refused at y")],
)
def test_wrong_answers_are_different(given: str, wanted: str) -> None:
    outcome = _with(given, wanted)
    assert outcome.verdict is Verdict.DIFFERENT
    assert outcome.details


@pytest.mark.parametrize(
    ("given", "wanted"), [("one", "one"), ("refused at x", "refused at x"), ("refused at anywhere", "refused at x")]
)
def test_right_answers_are_the_same(given: str, wanted: str) -> None:
    assert _with(given, wanted) == Comparison(Verdict.SAME)


def test_a_pass_that_does_nothing_is_found_out(reference: ReferenceProcess) -> None:
    outcome = compare(MODULE, INSERT[1], reference.run, lambda text, _: ours(text, "symbol-dce"))
    assert outcome.verdict is Verdict.DIFFERENT
    assert '+    "func.return"(%arg0)' in outcome.details


def test_only_collectives_that_are_not_valid_may_be_refused() -> None:
    def refuse(message: str) -> Comparison:
        def reference(text: str, pipeline: str) -> str:
            raise Refused(f"x: {message}")

        return compare("", "", reference, lambda *_: "one")

    assert refuse(f"'sdy.all_slice' op {INVALID[0]}").verdict is Verdict.INVALID
    assert refuse("'sdy.all_slice' op no").verdict is Verdict.DIFFERENT


def test_fatal_refusals_are_believed_unless_asked() -> None:
    def fatal(text: str, pipeline: str) -> str:
        return _refuse(f"x: {FATAL[0]}")

    def dies(text: str, pipeline: str) -> str:
        raise Died

    assert compare("", "", lambda *_: "one", fatal).verdict is Verdict.FATAL
    assert compare("", "", dies, fatal, ask_fatal=True).verdict is Verdict.FATAL
    assert compare("", "", lambda *_: "one", fatal, ask_fatal=True).verdict is Verdict.DIFFERENT
    assert compare("", "", dies, lambda *_: "one").verdict is Verdict.DIED


@pytest.mark.skipif(IS_OLD, reason="made for the newest reference")
def test_the_reference_starts_again_after_it_has_died(reference: ReferenceProcess) -> None:
    bodiless = "func.func private @f(tensor<8xf32>)"
    with pytest.raises(Died):
        reference.run(bodiless, INSERT[0])
    assert "sdy.reshard" in reference.run(MODULE, INSERT[1])


def test_incompatible_parts_of_an_axis_are_told_from_other_differences() -> None:
    def details(first: str, op: str) -> str:
        attrs = f'out_sharding = #sdy.sharding<@m, [{{{first}}}, {{"b":(1)2}}]>'
        return f'--- wanted\n+++ given\n-  %1 = "sdy.all_slice"(%0) <{{{attrs}}}>\n+  %1 = "sdy.{op}"(%0)'

    assert shards_by_incompatible_parts(details('"b":(3)2', "all_gather"))
    assert not shards_by_incompatible_parts(details('"b":(2)3', "all_gather"))
    assert not shards_by_incompatible_parts(details('"b":(3)2', "all_reduce"))


@pytest.mark.skipif(IS_OLD, reason="made for the newest reference")
def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--modules", "1", "--families", "product"]) == 0
    assert capsys.readouterr().err.startswith("product: 1 modules")
