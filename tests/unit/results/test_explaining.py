"""Explanations without `PropagateOptions.trace`: from what every run records."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyshardy
from pyshardy.results import propagation

PROGRAMS = sorted((Path(__file__).parents[2] / "golden" / "programs").glob("*.mlir"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_run_is_explained_without_another_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traced, plain = pyshardy.propagate(path, trace=True), pyshardy.propagate(path)
    monkeypatch.setattr(propagation, "shard", lambda *_: pytest.fail("propagated once more"))
    for name in (one.name for one in (*plain.inputs, *plain.outputs)):
        assert plain.explain(name).to_json() == traced.explain(name).to_json()
    assert plain.conflicts().to_json() == traced.conflicts().to_json()
    assert not plain.steps and traced.steps


GROUPED = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} loc("a"),
                %b: tensor<8xf32> loc("b")) -> tensor<8xf32> {
  sdy.sharding_group %a group_id=0 : tensor<8xf32>
  sdy.sharding_group %b group_id=0 : tensor<8xf32>
  %0 = stablehlo.add %a, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def test_sharding_groups_are_explained_alike() -> None:
    traced, plain = pyshardy.propagate(GROUPED, trace=True), pyshardy.propagate(GROUPED)
    assert "group" in str(plain.explain("b"))
    assert plain.explain("b").to_json() == traced.explain("b").to_json()


def test_an_edit_is_explained_as_the_edited_program() -> None:
    result = pyshardy.propagate(PROGRAMS[0])
    names = [one.name for one in result.inputs]
    edited = result.edit({names[0]: None}).result
    expected = pyshardy.propagate(result.before.annotate({names[0]: None}), trace=True)
    for name in names:
        assert edited.explain(name).to_json() == expected.explain(name).to_json()
