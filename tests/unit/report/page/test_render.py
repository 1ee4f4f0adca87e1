"""The file that the data becomes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.report.page.render import render, script_json
from pyshardy.results.pages import describe_result
from support.hostile import HOSTILE, hostile_program

from .results import MLP, data_of


def test_data_comes_back_as_it_was() -> None:
    data = data_of("mlp")
    found = re.findall(r'<script type="application/json" class="result">(.*?)</script>', render([data]), re.DOTALL)
    assert [json.loads(text) for text in found] == [json.loads(json.dumps(data))]


def test_no_name_reaches_the_markup() -> None:
    html = render([describe_result(pyshardy.propagate(hostile_program()), hints=False, name=HOSTILE[0])])
    without_data = re.sub(
        r'(<script type="application/json" class="result">).*?</script>', r"\1</script>", html, flags=re.DOTALL
    )
    assert "stolen" in html and "stolen" not in without_data
    assert html.count("</script>") == 3
    (data,) = re.findall(r'class="result">(.*?)</script>', html, re.DOTALL)
    assert not set("<>&") & set(data)


@pytest.mark.parametrize("text", HOSTILE)
def test_json_in_a_script_is_inert(text: str) -> None:
    made = script_json({text: [text]})
    assert not set("<>&") & set(made) and json.loads(made) == {text: [text]}


def test_the_policy_names_the_scripts_and_nothing_else() -> None:
    html = render([data_of("mlp")])
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', html)
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert len(scripts) == 2 and policy.startswith("default-src 'none'; ")
    assert re.findall(r"sha256-([^&']+)", policy.partition("script-src")[2].partition(";")[0]) == hashes
    assert "unsafe" not in policy and "http" not in policy.replace("http-equiv", "")


def test_scripts_make_no_markup_of_texts() -> None:
    folder = Path(pyshardy.__file__).parent / "report/page/static"
    for path in folder.glob("*.js"):
        if path.name != "vendor.js":
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|fetch\(|XMLHttp",
                path.read_text(),
            ), path.name


def test_what_comes_from_npm_has_its_licences_and_its_versions() -> None:
    root = Path(__file__).parents[4]
    wanted = json.loads((root / "tools/page/package.json").read_text())["dependencies"]
    licences = (root / "pyshardy/report/page/static/vendor.LICENSES.txt").read_text()
    assert wanted and all(f"{name} {version} (" in licences for name, version in wanted.items())
    locked = json.loads((root / "tools/page/package-lock.json").read_text())["packages"]
    assert all("integrity" in package for name, package in locked.items() if name)


def test_report_of_a_partition_and_in_every_format(tmp_path: Path) -> None:
    part = pyshardy.partition(pyshardy.load(MLP))
    part.report(tmp_path / "a.html", hints=False)
    part.report(str(tmp_path / "a.json"), format="json", hints=False)
    part.report(tmp_path / "b.json", format="json", compare=part.propagated, hints=False)
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "a.json").read_text())["overview"]["devices"] == 8
    assert [one["overview"]["source"] for one in json.loads((tmp_path / "b.json").read_text())["results"]] == [
        "function @main (1)", "function @main (2)",
    ]  # fmt: skip


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    result = pyshardy.propagate(MLP)
    with pytest.raises(UsageError, match="got the format 'pdf', needed html, json or model-explorer|needed one of"):
        result.report(tmp_path / "a.pdf", format="pdf")
    with pytest.raises(UsageError, match="got no such file or directory, needed a place that can be written to"):
        result.report(tmp_path / "none" / "a.html")


@pytest.mark.parametrize("names", [("today",), ("today", "today"), ("a", "b", "c"), "ab", 3, (1, 2)])
def test_two_results_have_two_names(names: Any, tmp_path: Path) -> None:
    result = pyshardy.propagate("func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }")
    with pytest.raises(UsageError, match="needed two different names"):
        result.report(tmp_path / "a.html", compare=result, names=names)
    with pytest.raises(UsageError, match="needed `compare`, another result, for the second name"):
        result.report(tmp_path / "a.html", names=("today", "tomorrow"))
    assert not list(tmp_path.iterdir())
    result.report(tmp_path / "a.json", compare=result, names=("today", "tomorrow"), format="json", hints=False)
    assert '"today"' in (tmp_path / "a.json").read_text() and '"tomorrow"' in (tmp_path / "a.json").read_text()
