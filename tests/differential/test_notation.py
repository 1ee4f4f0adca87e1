"""Meshes, axes and shardings are accepted, refused and printed as by MLIR's parser and verifier."""

from __future__ import annotations

import re
from functools import cache

import pytest
from jaxlib.mlir import ir

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import sort_axes
from pyshardy.core.mesh import Mesh
from pyshardy.ir.context import make_context
from support.reference import jaxlib_version

from .notation_cases import KINDS, Case, cases
from .notation_compare import KNOWN_DIFFERENCES, Outcome, compare, differences, ours, reference

CASES_PER_KIND = 2400
OLD = jaxlib_version() < (0, 12)

# What the verifier says of everything that text can get wrong. Source: docs/semantics/representation.md#what-is-refused
REFUSALS = """
    mesh: axis size must be at least 1, got: 0
    mesh: device id must be non-negative, got: -1
    mesh: axes is empty and device_ids has more than one element
    mesh: duplicate axis name: "
    mesh: total product of axis sizes must match total number of device ids
    mesh: sorted device ids must be iota\\(product\\(axes\\)\\), got:
    mesh: expected integer value
    axis: unknown axis name: "
    axis: sub-axis pre-size must be at least 1
    axis: sub-axis sizes must be greater than 1
    axis: sub-axis next pre-size \\d+ doesn't divide the size of the full axis
    axis: sub-axis size is equal to the full axis size
    dim: expecting priority in format 'p<number>', got
    dim: priorities with leading zeros are not allowed, got: p0
    dim: expecting integer priority, got: p9223372036854775808
    dim: dim 0 is empty and closed but has a priority
    dim: duplicate axis ref
    dim: two consecutive sub-axes can be merged
    dim: both sub-axis and full-axis are used for axis name
    dim: overlapping sub-axes
    sharding: unknown mesh: @nope
    sharding: a (single-device|maximal) sharding can only have a sharding with rank 0
    sharding: sharding doesn't match tensor rank: \\d != \\d
    sharding: duplicate axis ref
    sharding: replicated axes are not ordered w.r.t. mesh
    sharding: unreduced axes are not ordered w.r.t. mesh
    sharding: two consecutive sub-axes can be merged
    sharding: expecting MeshAttr or FlatSymbolRefAttr
    sharding: failed to parse Sdy_TensorSharding, expected valid named axis list after comma
    sharding: failed to parse Sdy_TensorSharding parameter 'replicated_axes'
    sharding: failed to parse Sdy_TensorSharding parameter 'unreduced_axes'
    shardings: sharding doesn't match tensor rank
"""

EXAMPLES = {
    "beginning": [
        Case("mesh", ' <["x"=2]>'),
        Case("mesh", '#sdy.mesh<["x"=2]>'),
        Case("sharding", " // a comment\n<@m, [{}]>"),
        Case("shardings", "\n<[]>"),
    ],
    "end": [Case("mesh", '<["x"=2]>"'), Case("mesh", '<["x"=2]>\0')],
    "comment": [Case("axis", '"x" // (\n'), Case("mesh", '<[] // "\n>'), Case("dim", "{// }\n}")],
    "long form of an inlined mesh": [Case("sharding", '<mesh#sdy.mesh<["x"=2]>, [{"x"}]>')],
    "reduction kinds": [
        Case("sharding", '<@m, [{}], unreduced=max{"x"}>'),
        Case("shardings", '<[<@m, [{}], unreduced{"x"}>]>'),
    ],
}


@cache
def _cases(kind: str) -> tuple[Case, ...]:
    return tuple(cases(kind, CASES_PER_KIND, seed=1))


@pytest.mark.parametrize("kind", KINDS)
def test_reading_and_printing_is_that_of_the_reference(kind: str) -> None:
    found = differences(_cases(kind))
    assert not found, "\n".join(found[:5])


def test_there_are_12000_cases_half_of_them_accepted() -> None:
    accepted = [case for kind in KINDS for case in _cases(kind) if ours(case).printed is not None]
    assert CASES_PER_KIND * len(KINDS) == 12000
    assert 6000 < len(accepted) < 8000


def test_cases_reach_every_refusal() -> None:
    missing = {line.strip() for line in REFUSALS.strip().splitlines()}
    with make_context(), ir.Location.unknown():
        for kind in KINDS:
            wanted = {line for line in missing if line.startswith(f"{kind}: ")}
            for case in _cases(kind):
                message = f"{kind}: {reference(case).message}" if wanted else ""
                hit = {line for line in wanted if re.search(line.replace(": ", ": .*", 1), message, re.DOTALL)}
                wanted -= hit
                missing -= hit
    assert not missing


def test_cases_are_the_same_for_the_same_seed() -> None:
    assert list(cases("sharding", 20, seed=3)) == list(cases("sharding", 20, seed=3))
    assert list(cases("sharding", 20, seed=3)) != list(cases("sharding", 20, seed=4))


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, examples in EXAMPLES.items() for case in examples], ids=str
)
def test_known_differences_are_differences(name: str, case: Case) -> None:
    with make_context(), ir.Location.unknown():
        text, known = compare(case)
    if name == "reduction kinds" and not OLD:
        assert text is None
    else:
        assert (text is not None, known) == (True, name)


def test_every_known_difference_has_an_example_and_a_reason() -> None:
    assert list(EXAMPLES) == list(KNOWN_DIFFERENCES)
    assert all(entry.reason for entry in KNOWN_DIFFERENCES.values())


PAIRS_MESH = Mesh([("q", 24), ("p", 4)])


def _all_refs(mesh: Mesh) -> list[AxisRef]:
    """Every valid reference to an axis of the mesh."""
    parts = [
        AxisRef(name, pre_size, part)
        for name, size in mesh.axes
        for pre_size in range(1, size)
        for part in range(2, size)
        if size % (pre_size * part) == 0
    ]
    return [*map(AxisRef, mesh.axis_names), *parts]


def test_overlap_merging_and_order_of_any_two_references_are_those_of_the_verifier() -> None:
    refs = _all_refs(PAIRS_MESH)
    wrong = []
    with make_context(), ir.Location.unknown():
        for a in refs:
            for b in refs:
                apart = not a.overlaps(b)
                listed = apart and not a.can_merge(b)
                in_order = listed and sort_axes((a, b), PAIRS_MESH) == [a, b]
                texts = {f"[{{{a}}}, {{{b}}}]": apart, f"[{{{a}, {b}}}, {{}}]": listed}
                texts |= {f"[{{}}, {{}}], replicated={{{a}, {b}}}": in_order}
                wrong += [text for text, expected in texts.items() if _verifies(text) is not expected]
    assert not wrong
    assert len(refs) > 20


def _verifies(text: str) -> bool:
    argument = f"tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@q, {text}>}}"
    try:
        ir.Module.parse(f"sdy.mesh @q = {PAIRS_MESH}\nfunc.func private @f({argument})")
    except ir.MLIRError:
        return False
    return True


VALID = Case("dim", '{"x", ?}p1')
INVALID = Case("dim", '{"x", "x"}')


def test_the_comparison_passes_what_is_right() -> None:
    assert differences([VALID, INVALID]) == []


def test_the_comparison_sees_a_wrong_print() -> None:
    (found,) = differences([VALID], read=lambda case: Outcome('{"x", ?}'))
    assert 'expected accepted: {"x", ?}p1' in found
    assert 'given    accepted: {"x", ?}\n' in found + "\n"


def test_the_comparison_sees_a_wrong_refusal_and_a_wrong_acceptance() -> None:
    assert len(differences([VALID, INVALID], read=lambda case: Outcome(None, "wrong"))) == 1
    (found,) = differences([INVALID], read=lambda case: Outcome(case.text))
    assert "expected refused: " in found and "duplicate axis ref" in found


@pytest.mark.parametrize("kind", KINDS)
def test_the_comparison_sees_a_reader_that_forgets_to_check(kind: str) -> None:
    def careless(case: Case) -> Outcome:
        outcome = ours(case)
        return Outcome(case.text) if outcome.printed is None else outcome

    assert len(differences(_cases(kind)[:300], read=careless)) > 30


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("axis", '"x", "y"'),
        ("axis", '"x", ?'),
        ("dim", '{"x"}, {"y"}'),
        ("dim", '{"x"} x'),
        ("mesh", '<["x"=2]> x'),
        ("axis", '"x":(4611686018427387904)4'),
        ("axis", '"x":(4294967296)4294967296'),
    ],
)
def test_the_reference_refuses_what_only_its_surroundings_would_allow(kind: str, text: str) -> None:
    with make_context(), ir.Location.unknown():
        assert reference(Case(kind, text)).printed is None
    assert ours(Case(kind, text)).printed is None
