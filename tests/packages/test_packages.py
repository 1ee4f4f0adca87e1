"""Programs of published packages under random annotations: after the pipeline, the module is the reference's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from pyshardy.core.notation import parse_mesh, parse_sharding
from pyshardy.core.sharding import TensorSharding
from support.reference import jaxlib_version

from ..differential.compare import Outcome, difference, our_outcome, reference_pipeline
from ..differential.reference_process import Died, ReferenceProcess, Refused
from . import PROGRAMS
from .annotate import annotate

PIPELINE = "sdy-propagation-pipeline"
SEEDS = range(5)
DISTRIBUTIONS = {"haiku": "dm-haiku", "e3nn_jax": "e3nn-jax", "ott": "ott-jax", "jax_md": "jax-md"}
"""The names of packages on the index where they differ from those in Python."""
TEXT = """
func.func @main(%a: tensor<8x16xf32>, %b: tensor<16x12xf32>) -> (tensor<8x12xf32>, tensor<12x8xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x12xf32>) -> tensor<8x12xf32>
  %1 = stablehlo.sine %0 : tensor<8x12xf32>
  %2 = stablehlo.cosine %1 : tensor<8x12xf32>
  %3 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x12xf32>) -> tensor<12x8xf32>
  return %0, %3 : tensor<8x12xf32>, tensor<12x8xf32>
}"""
IS_OLD = jaxlib_version() < (0, 12)


def lowered(name: str) -> str:
    """The program's module, or a skipped test if a package is not installed."""
    if PROGRAMS[name].missing():
        pytest.skip("needs published packages, which `make test-packages` installs")
    return PROGRAMS[name].lower().as_text()


def compare(text: str, reference: ReferenceProcess) -> str:
    """The difference between the reference and pyshardy on a module that the reference accepts, or nothing."""
    try:
        expected = Outcome(reference.run(text, reference_pipeline(PIPELINE)).strip())
    except Refused as error:
        return f"the reference refuses it: {error}"
    except Died:
        return "the reference ends its process"
    return difference(expected, our_outcome(text, PIPELINE, debug_info=True))


@pytest.mark.filterwarnings("ignore")  # the packages warn of each other and of jax
@pytest.mark.skipif(
    IS_OLD,
    reason="before jaxlib 0.12 the import passes run in another order. "
    "Source: docs/semantics/import.md#older-versions-of-jaxlib",
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, reference: ReferenceProcess) -> None:
    text = lowered(name)
    for seed in SEEDS:
        found = compare(annotate(text, f"{name} {seed}"), reference)
        assert found == "", f"seed {seed}: {found}"


def test_there_are_many_packages_and_programs() -> None:
    assert len(PROGRAMS) >= 40
    assert len({program.packages[0] for program in PROGRAMS.values()}) >= 8


def test_make_installs_every_package() -> None:
    """A program whose package is not installed is skipped, so the extra must have them all."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    imported = {package for program in PROGRAMS.values() for package in program.packages}
    installed = {requirement for requirement in project["optional-dependencies"]["packages"] if "=" not in requirement}
    assert {DISTRIBUTIONS.get(package, package) for package in imported} == installed


def shardings(text: str) -> list[TensorSharding]:
    """All shardings in a module."""
    return [parse_sharding(found) for found in re.findall(r"<@mesh, \[[^\]]*\][^>]*>", text)]


def test_annotations_are_deterministic_and_differ() -> None:
    found = [annotate(TEXT, seed) for seed in range(10)]
    assert found == [annotate(TEXT, seed) for seed in range(10)]
    assert len(set(found)) == 10


def test_annotations_are_of_all_kinds() -> None:
    texts = [annotate(TEXT, seed) for seed in range(200)]
    axes = [parse_mesh(text.partition("sdy.mesh @mesh = ")[2].partition("\n")[0]).axes for text in texts]
    assert {len(found) for found in axes} == {2, 3, 4}
    assert {size for found in axes for _, size in found} == {2, 3, 4}
    dims = [dim for text in texts for sharding in shardings(text) for dim in sharding.dims]
    assert {dim.is_open for dim in dims} == {True, False}
    assert {dim.priority for dim in dims} == {None, 0, 1, 2, 3}
    assert {axis.size is None for dim in dims for axis in dim.axes} == {True, False}
    assert any("sdy.sharding_per_value" in text for text in texts)


def test_dead_code_has_no_priorities() -> None:
    dead = [line for seed in range(500) for line in annotate(TEXT, seed).splitlines() if re.search("cosine|sine", line)]
    annotated = [found for line in dead for found in shardings(line)]
    assert annotated
    assert {dim.priority for sharding in annotated for dim in sharding.dims} == {None}


def test_a_refusal_is_noticed(reference: ReferenceProcess) -> None:
    text = "func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@none, [{}]>}) { return }"
    assert "the reference refuses it" in compare(text, reference)
