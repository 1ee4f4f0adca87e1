"""Every pass alone, with every value of its options, gives the reference's result on modules of all stages.

`python -m tests.differential.campaign --levels passes` compares more modules, and those of all JAX programs.
"""

from __future__ import annotations

from collections import Counter

import pytest

from support.reference import jaxlib_version

from .pass_compare import (
    CALLED_TWICE,
    RESHAPE,
    calls_twice_with_some_arguments_sharded,
    compare_pass,
    listed_reason,
    without_empty_edges,
)
from .pass_programs import FEATURES, PIPELINE_VARIANTS, VARIANTS, Named, jax_modules, pipeline_passes, random_modules
from .reference_process import Died, ReferenceProcess
from .reshard_compare import Comparison, Verdict, ours

pytestmark = pytest.mark.skipif(
    jaxlib_version() < (0, 12),
    reason="before jaxlib 0.12 passes are missing, rules are others, and the stages come in another order",
)
SEEDS = range(2 * (len(FEATURES) + 1))
PER_PASS = 60


@pytest.fixture(scope="module")
def modules(reference: ReferenceProcess) -> list[Named]:
    return random_modules(SEEDS, reference) + jax_modules("mlp_training", reference)


@pytest.mark.parametrize("name", VARIANTS)
def test_pass(name: str, modules: list[Named], reference: ReferenceProcess) -> None:
    found, wrong = Counter[str](), []
    for pipeline in VARIANTS[name]:
        more, different = compare_pass(modules, pipeline, PER_PASS // len(VARIANTS[name]) + 1, reference.run)
        found += more
        wrong += different
    assert not wrong, "\n\n".join(wrong)
    assert found.total() >= PER_PASS
    assert found["same"] > 0.5 * PER_PASS, found


@pytest.mark.parametrize("name", PIPELINE_VARIANTS)
def test_pipeline(name: str, modules: list[Named], reference: ReferenceProcess) -> None:
    found, wrong, pipelines = Counter[str](), [], PIPELINE_VARIANTS[name]
    for pipeline in pipelines:
        more, different = compare_pass(modules, pipeline, PER_PASS // len(pipelines) + 1, reference.run)
        found += more
        wrong += different
    assert not wrong, "\n\n".join(wrong)
    assert found.total() >= PER_PASS
    assert found["same"] > 0.4 * PER_PASS, found


def test_every_option_is_compared_both_ways() -> None:
    assert "sdy-basic-propagate{keep-sharding-rules=true}" in VARIANTS["sdy-basic-propagate"]
    assert len(VARIANTS["sdy-aggressive-propagate"]) == 7
    assert len(VARIANTS["canonicalize"]) == 4
    assert all(len(set(variants)) == len(variants) >= 1 for variants in VARIANTS.values())
    export = PIPELINE_VARIANTS["sdy-export-pipeline"]
    assert len(export) >= 21
    assert "sdy-export-pipeline{keep-sharding-rules=true mark-partial-result-with-unreduced-axes=true}" in export


def test_modules_are_of_many_stages(modules: list[Named]) -> None:
    assert len(modules) >= 200
    assert len({text for _, text in modules}) > 0.9 * len(modules)
    for word in (
        "sdy.named_computation",
        "sdy.data_flow_edge",
        "sdy.reshard",
        "<mesh<",
        "unreduced=",
        "func.call",
        "}p1",
    ):
        assert any(word in text for _, text in modules), word
    assert "sdy-user-priority-propagate{keep-sharding-rules=true}" in pipeline_passes("sdy-propagation-pipeline")


def test_a_pass_that_does_nothing_is_found_out(modules: list[Named], reference: ReferenceProcess) -> None:
    for pipeline in ("sdy-close-shardings", "sdy-inline-meshes", "sdy-basic-propagate"):
        _, wrong = compare_pass(modules, pipeline, 20, reference.run, lambda text, _: ours(text, ""))
        assert wrong, pipeline


def test_a_death_without_a_listed_reason_is_found_out(modules: list[Named]) -> None:
    def dies(text: str, pipeline: str) -> str:
        raise Died

    _, wrong = compare_pass(modules, "sdy-close-shardings", 3, dies)
    assert len(wrong) == 3


def test_entries_of_no_propagation_edges_are_left_out() -> None:
    empty, full = "#sdy.propagation_edges<[]>", "#sdy.propagation_edges<[{}]>"
    assert without_empty_edges(f"[{empty}, {full}, {empty}]") == f"[{full}]"
    assert without_empty_edges(f"[{empty}]") == "[]"
    assert without_empty_edges("[{}, ]") == "[{}, ]"


@pytest.mark.parametrize(
    ("arguments", "calls", "expected"),
    [("SN", 2, True), ("NS", 3, True), ("SN", 1, False), ("SS", 2, False), ("NN", 2, False)],
)
def test_functions_with_some_arguments_sharded_are_found(arguments: str, calls: int, expected: bool) -> None:
    assert calls_twice_with_some_arguments_sharded(program_with_calls(arguments, calls)) is expected


def program_with_calls(arguments: str, calls: int) -> str:
    """A program that calls a function of two arguments, of which those named "S" are sharded."""
    kinds = {"S": ' {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}', "N": ""}
    given = ", ".join(f"%a{index}: tensor<8xf32>{kinds[kind]}" for index, kind in enumerate(arguments))
    call = "  func.call @f(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> ()\n"
    return f"""sdy.mesh @m = <["a"=2]>
func.func @main(%x: tensor<8xf32>) {{
{call * calls}  return
}}
func.func private @f({given}) {{
  return
}}"""


@pytest.mark.parametrize(
    ("wanted", "pipeline", "calls", "is_listed"),
    [
        ("in_shardings 1 - sharding doesn't match tensor rank: 0 != 1", "sdy-import-func-calls", 2, True),
        ("in_shardings 1 - sharding doesn't match tensor rank: 0 != 1", "sdy-import-func-calls", 1, False),
        ("in_shardings 1 - sharding doesn't match tensor rank: 0 != 1", "sdy-import-pipeline", 2, False),
        ("anything else", "sdy-import-func-calls", 2, False),
    ],
)
def test_freed_shardings_are_listed(wanted: str, pipeline: str, calls: int, is_listed: bool) -> None:
    details = f"given  accepted\nwanted refused: -:1:1: 'sdy.named_computation' op {wanted}"
    found = listed_reason(program_with_calls("SN", calls), pipeline, Comparison(Verdict.DIFFERENT, details))
    assert found == (CALLED_TWICE if is_listed else None)


@pytest.mark.parametrize(
    ("shape", "sharding", "pipeline", "is_listed"),
    [
        ("4x3x2", '[{"c"}, {"b"}]', "sdy-insert-explicit-reshards{enable-full-version=true}", True),
        ("4x3x2", '[{"c"}, {"b"}]', "sdy-export-pipeline{enable-insert-explicit-collectives=true}", True),
        ("4x3x2", '[{"c"}, {"b"}]', "sdy-insert-explicit-reshards", False),
        ("8x3", '[{"c"}, {"b"}]', "sdy-export-pipeline", False),
        ("4x3x2", "", "sdy-export-pipeline", False),
    ],
)
def test_deaths_at_reshapes_are_listed(shape: str, sharding: str, pipeline: str, is_listed: bool) -> None:
    attribute = f"{{sdy.sharding = #sdy.sharding_per_value<[<@m, {sharding}>]>}}" if sharding else ""
    text = f"""sdy.mesh @m = <["b"=4, "c"=6]>
func.func @main(%a: tensor<{shape}xf32>) {{
  %0 = stablehlo.reshape %a {attribute} : (tensor<{shape}xf32>) -> tensor<24x1xf32>
  return
}}"""
    assert listed_reason(text, pipeline, Comparison(Verdict.DIED)) == (RESHAPE if is_listed else None)
