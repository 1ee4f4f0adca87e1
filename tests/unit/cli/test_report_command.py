"""`pyshardy report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command_line import Cli, Outcome

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"


def test_a_page(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mlp.html"
    assert cli("report", MLP, "-o", path) == Outcome(0, f"wrote {path}: open it in a browser\n", "")
    assert path.read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_two_programs_and_a_chip(cli: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other.mlir"
    other.write_text(MLP.read_text().replace('[{}, {"model"}]', "[{}, {}]"))
    path = tmp_path / "both.json"
    found = cli("report", MLP, "--compare", other, "--hardware", "h100", "--format", "json", "-o", path)
    assert found == Outcome(0, f"wrote {path}\n", "")
    results = [one["overview"] for one in json.loads(path.read_text())["results"]]
    assert [one["source"] for one in results] == ["mlp.mlir", "other.mlir"]
    assert [one["inputs"][3] for one in results] == [67584, 133120]
    assert all("estimated" in one["cost"][0][0] and one["cost"][0][1].endswith("s") for one in results)


def test_a_sharding_on_the_command_line_is_for_both(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    assert cli("report", MLP, "--shard", "params['w1']=None,None", "--format", "model-explorer", "-o", path).status == 0
    assert json.loads(path.read_text())["label"] == "mlp.mlir"


def test_what_makes_no_sense_is_refused(cli: Cli, tmp_path: Path) -> None:
    found = cli("report", MLP, "-o", tmp_path / "none" / "a.html")
    assert (found.status, found.out) == (2, "")
    assert "needed a place that can be written to" in found.err
    assert cli("report", MLP, "--format", "pdf").status == 2
    assert cli("report", MLP, "--json", "--format", "model-explorer").status == 2
    assert cli("report", MLP, "--compare", tmp_path / "missing.mlir").status == 2


def test_standard_output(cli: Cli) -> None:
    assert json.loads(cli("report", MLP, "--json", "--no-hints").out)["overview"]["source"] == "mlp.mlir"
    assert cli("report", MLP, "-o", "-").out.startswith("<!doctype html>")


def test_what_costs_most_is_on_the_overview(cli: Cli, tmp_path: Path) -> None:
    text = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<8192x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<4096x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> tensor<8192x4096xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16>
  return %0 : tensor<8192x4096xbf16>
}"""
    source, path = tmp_path / "rivals.mlir", tmp_path / "r.json"
    source.write_text(text)
    assert cli("report", source, "--hardware", "h100", "--format", "json", "-o", path).status == 0
    ((what, _, cure, worth, patch),) = json.loads(path.read_text())["overview"]["findings"]
    assert "makes devices communicate" in what and cure.startswith("do: annotate `arg0`") and "tried: a step" in worth
    assert patch == ""
    for options in (("--no-hints", "--hardware", "h100"), ()):
        assert cli("report", source, *options, "--format", "json", "-o", path).status == 0
        assert json.loads(path.read_text())["overview"]["findings"] is None
