"""Names of dimensions without a rule, and changes of tables of rules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from search.patching import apply_patch

from pyshardy.checkup.patching.rule_tables import RuleChange, missing_rules, rule_tables

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
        with_rule(table) == f'RULES = (\n    ("batch", "data"),\n    ("embed", None),\n    ("ffn", "model"){comma}\n)\n'
    )


def test_a_rule_is_added_to_a_line() -> None:
    table = 'RULES = [["batch", "data"], ["embed", ("data", "model")]]\n'
    assert with_rule(table) == 'RULES = [["batch", "data"], ["embed", ("data", "model")], ("ffn", "model")]\n'


def test_a_dictionary_is_a_table() -> None:
    table = 'RULES = {\n    "batch": "data",\n    "embed": None,\n}\n'
    assert with_rule(table) == table.replace("None,", 'None,\n    "ffn": "model",')


def test_other_axes_for_an_entry_of_a_dictionary() -> None:
    table = 'RULES = {"batch": "data", "edge": ("data", "model")}\n'
    Path("rules.py").write_text(table)
    (rules,) = rule_tables(ast.parse(table), SIZES)
    change = RuleChange("rules.py", rules[0], ("data", "model"))
    assert change.text == "'batch': ('data', 'model') instead of 'batch': 'data' at rules.py:1"
    assert "".join(apply_patch([table], change.patch())) == table.replace('"data",', '("data", "model"),', 1)


def test_names_that_functions_of_other_files_make_a_spec_of() -> None:
    partition = (
        'RULES = {"batch": "data", "embed": None}\ndef spec(*names):\n    return P(*[RULES[one] for one in names])\n'
    )
    named = "def named(mesh, *names):\n    return NamedSharding(mesh, spec(*names))\n"
    trees = [ast.parse(partition), ast.parse(named), ast.parse('given = named(mesh, "batch", "ffn")\n')]
    (rules,) = rule_tables(trees[0], SIZES)
    assert [one.name for one in missing_rules(trees, rules, SIZES)] == ["ffn"]


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
