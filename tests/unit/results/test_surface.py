"""`Propagation` and `Partition` show themselves in the same ways, and do not change."""

from __future__ import annotations

import dataclasses
import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import pyshardy
from pyshardy.ir.diagnostics import Diagnostic, Severity
from pyshardy.results.program_result import warning_text

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
HOSTILE = """sdy.mesh @m = <["<b>x</b>"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"<b>x</b>"}]>} loc("<script>a</script>"))
    -> (tensor<f32> {jax.result_info = "[bold]<img src=x>[/bold]"}) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32> loc("<i>sum</i>"("<u>.py":3:8))
  return %1 : tensor<f32>
}"""
RESULTS = {"propagation": pyshardy.propagate, "partition": pyshardy.partition}


@pytest.mark.parametrize("kind", RESULTS)
def test_both_results_have_one_surface(kind: str) -> None:
    result = RESULTS[kind](MLP)
    title = kind.capitalize()
    assert repr(result) == f"<{title} of function @main: 3 inputs, 1 output, 8 devices>"
    assert str(result).endswith("\n") and len(str(result).splitlines()) > 5
    assert json.loads(json.dumps(result.to_json())) == json.loads(json.dumps(result.summary.to_json()))
    page = result._repr_html_()
    (tables,) = re.findall(r"<pre .*?</pre>", page, re.DOTALL)
    plain = unescape(re.sub(r"<[^>]+>", "", tables))
    lines = [line.rstrip() for line in plain.splitlines()]
    assert len(lines) > 5 and lines == str(result).splitlines()[-len(lines) :]  # the verdict stands in the overview
    (found,) = result.run(*(np.ones(shape, np.float32) for shape in ((32, 64), (64, 256), (256, 64))))
    assert found.shape == (32, 64)
    assert [tensor.name for tensor in result.inputs] == ["x", "params['w1']", "params['w2']"]
    assert result.warnings == () == result.diagnostics
    assert result.before.name == str(MLP)


@pytest.mark.parametrize("kind", RESULTS)
def test_results_do_not_change(kind: str) -> None:
    result = RESULTS[kind](MLP)
    for field in dataclasses.fields(result):
        if not field.name.startswith("_"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(result, field.name, None)
    for found in (result.inputs, result.outputs, result.diagnostics, result.stages, result.passes):
        assert isinstance(found, tuple)
    with pytest.raises(TypeError):
        result.meshes["other"] = pyshardy.Mesh({"x": 2})  # type: ignore[index]


@pytest.mark.parametrize("kind", RESULTS)
def test_strings_of_a_program_are_escaped(kind: str) -> None:
    page = RESULTS[kind](HOSTILE)._repr_html_()
    tags = set(re.findall(r"<(/?\w+)", page))
    assert {tag.strip("/") for tag in tags} <= {"br", "code", "details", "div", "pre", "span", "summary"}
    assert "&lt;" in page


def test_a_tag_that_is_not_escaped_would_be_seen() -> None:
    assert set(re.findall(r"<(/?\w+)", "<pre><b>x</b></pre>")) - {"pre", "/pre", "span", "/span"} == {"b", "/b"}


def test_times_are_those_of_stages_and_of_passes() -> None:
    propagation = pyshardy.propagate(MLP)
    partition = pyshardy.partition(propagation)
    common = ["read", "import", "propagate", "export"]
    assert [name for name, _ in propagation.stages] == [*common, "write"]
    assert [name for name, _ in partition.stages] == [*common, "partition", "write"]
    spent = dict(propagation.stages)
    assert spent["propagate"] >= dict(propagation.passes)["sdy-user-priority-propagate"] > 0
    assert dict(partition.stages)["propagate"] == spent["propagate"]  # the same ones: nothing was done twice
    assert "sdy-convert-global-to-local" in dict(partition.passes)


def test_a_summary_is_plain_data() -> None:
    summary = pyshardy.partition(HOSTILE).summary
    assert (summary.title, summary.device_count) == ("function @main", 2)
    assert [row.kind for row in summary.traffic.collectives] == ["all_reduce"]
    assert summary.meshes == (("m", pyshardy.Mesh({"<b>x</b>": 2})),)


def test_warnings_name_the_line_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what a library does, the innermost call of the user's own, with its path from where the user is."""
    monkeypatch.chdir(tmp_path)
    frames = f'"apply"("/x/site-packages/flax/linear.py":287:8) at "step"("{tmp_path}/train.py":9:4)'
    location = f'loc("jit(f)/dot"(callsite({frames})))'
    assert warning_text(Diagnostic(Severity.WARNING, "beware", location)) == "train.py:9:4: beware"
    assert warning_text(Diagnostic(Severity.WARNING, "beware", 'loc("-":3:1)'), "net.mlir") == "net.mlir:3:1: beware"
    assert warning_text(Diagnostic(Severity.WARNING, "beware")) == "beware"
