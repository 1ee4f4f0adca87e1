"""Names of dimensions without a rule, and changes of tables of rules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from search.patching import apply_patch

from pyshardy.checkup.rule_tables import RuleChange, missing_rules, rule_tables

SIZES = {"data": 4, "model": 2}
MODEL = 'kernel = nn.with_logical_partitioning(init, ("embed", "ffn"))\nbias = nn.with_logical_partitioning(zeros, ("ffn",))\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def with_rule(table: str, model: str = MODEL) -> str:
    """A table with one more rule for what is missing."""
    Path("rules.py").write_text(table)
    tree = ast.parse(table)
    (rules,) = rule_tables(tree, SIZES)
    (missing,) = missing_rules([tree, ast.parse(model)], rules, SIZES)
    assert missing.name == "ffn" and missing.axes == ()
    patch = RuleChange("rules.py", missing, ("model",)).patch()
    return "".join(apply_patch(table.splitlines(keepends=True), patch))


@pytest.mark.parametrize("comma", [",", ""])
def test_a_rule_is_added_on_a_line_of_its_own(comma: str) -> None:
    table = f'RULES = (\n    ("batch", "data"),\n    ("embed", None){comma}\n)\n'
    assert (
        with_rule(table)
        == f'RULES = (\n    ("batch", "data"),\n    ("embed", None),\n    (\'ffn\', \'model\'){comma}\n)\n'
    )


def test_a_rule_is_added_to_a_line() -> None:
    table = 'RULES = [["batch", "data"], ["embed", ("data", "model")]]\n'
    assert with_rule(table) == 'RULES = [["batch", "data"], ["embed", ("data", "model")], (\'ffn\', \'model\')]\n'


@pytest.mark.parametrize(
    "model",
    [
        'kernel = nn.with_logical_partitioning(init, ("embed", "batch"))\n',
        'kernel = nn.with_partitioning(init, ("embed", "model"))\n',  # an axis of the mesh
        'kernel = nn.with_partitioning(init, ("rows", "columns"))\n',  # none of these names has a rule
    ],
)
def test_no_rule_is_missing(model: str) -> None:
    tree = ast.parse('RULES = (("batch", "data"), ("embed", None))\n')
    (rules,) = rule_tables(tree, SIZES)
    assert list(missing_rules([tree, ast.parse(model)], rules, SIZES)) == []
