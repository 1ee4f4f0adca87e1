"""The registry of ops: every op has one line, every line says all traits, and no file keeps sets of its own beside it."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from pyshardy.ir.opspec import DECODERS, LOOKS
from pyshardy.rules.ops import FAMILIES, FOREIGN_POINTWISE, OPS, table_of
from pyshardy.rules.traits import ROOMS, SILENT, Elementwise, OpTraits, Priority
from support.op_traits import PARAMETERS, doubled, names_in, ops_of_dialect, problems

PACKAGE = Path(__file__).parent.parent / "pyshardy"
LINES = [line for lines in FAMILIES.values() for line in lines]
DIALECTS = ("stablehlo", "chlo", "sdy")


def test_no_op_has_two_lines() -> None:
    assert doubled(LINES) == []
    assert set(names_in(LINES)) == set(OPS)


def test_nothing_is_missing() -> None:
    assert problems(OPS, [name for dialect in DIALECTS for name in ops_of_dialect(dialect)]) == []


@pytest.mark.parametrize("dialect, count", [("stablehlo", 110), ("chlo", 50), ("sdy", 19)])
def test_the_ops_of_a_dialect_are_found(dialect: str, count: int) -> None:
    found = ops_of_dialect(dialect)
    assert len(found) >= count
    assert all(name.startswith(f"{dialect}.") for name in found)


def test_what_is_missing_is_named() -> None:
    """As for someone who adds an op and forgets its purity, or all but its rule."""
    lines = (
        ("toy.", "sin", FOREIGN_POINTWISE),
        ("toy.", "cos", FOREIGN_POINTWISE._replace(pure=None)),
        ("toy.", "tan", OpTraits(rule="elementwise:pointwise")),
    )
    assert problems(table_of({"toy": lines}), ["toy.sin", "toy.exp"]) == [
        "toy.exp has no line; it needs rule, elementwise, pure, priority, attributes, pad, local, exchange",
        "toy.cos lacks pure",
        *(f"toy.tan lacks {trait}" for trait in (
            "elementwise", "pure", "priority", "attributes", "pad", "local", "exchange")),
    ]  # fmt: skip
    assert doubled((*lines, lines[0])) == ["toy.sin"]


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"rule": "elementwise:nothing"}, "rule 'elementwise:nothing' is not in pyshardy.rules"),
        ({"rule": "nowhere:pointwise"}, "rule 'nowhere:pointwise' is not in pyshardy.rules"),
        ({"rule": "pointwise"}, "rule 'pointwise' is no function"),
        ({"pad": "control:pad_signature"}, "pad 'control:pad_signature' takes ('function', 'padder'), not"),
        ({"local": "checks:is_known"}, "local 'checks:is_known' is not in pyshardy.passes.partitioning.local"),
        ({"pure": "often"}, "pure 'often' is none of"),
        ({"attributes": {"size": "figures"}}, "attribute size has the decoder 'figures', which"),
        ({"looks_around": "far"}, "looks_around is 'far', which"),
    ],
)
def test_a_wrong_value_is_named(change: dict[str, str], problem: str) -> None:
    (found,) = problems({"toy.sin": FOREIGN_POINTWISE._replace(**change)})  # type: ignore[arg-type]
    assert found.startswith(f"toy.sin: {problem}")


def handlers_in(room: str, prefix: str) -> set[str]:
    """The functions of a room that a trait could name: public, with its parameters, and so called."""
    package = importlib.import_module(ROOMS[room])
    return {
        f"{path.stem}:{node.name}"
        for path in Path(next(iter(package.__path__))).glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
        if node.name.startswith(prefix) and tuple(argument.arg for argument in node.args.args) == PARAMETERS[room]
    }


@pytest.mark.parametrize(
    "room, prefix, others",
    [
        ("pad", "pad_", {"control:pad_computation_results"}),
        ("local", "localize_", set()),
        ("local", "lower_", set()),
        ("exchange", "resolve_", set()),
    ],
)
def test_no_function_is_forgotten(room: str, prefix: str, others: set[str]) -> None:
    found = handlers_in(room, prefix)
    assert len(found) > 4
    assert found - {getattr(traits, room) for traits in OPS.values()} == others


def test_no_decoder_is_forgotten() -> None:
    assert {decoder for traits in OPS.values() for decoder in (traits.attributes or {}).values()} == set(DECODERS)
    assert {traits.looks_around for traits in OPS.values() if traits.looks_around} == set(LOOKS)


def test_traits_go_together() -> None:
    for name, traits in OPS.items():
        if traits.elementwise is Elementwise.YES:
            assert traits.priority is (Priority.FIXED if "barrier" in name else Priority.PASS_THROUGH), name
        if traits.is_terminator or traits.ends_other_blocks or traits.reduces:
            assert not traits.pure, name
        if traits.data_flow is not None:
            assert traits.rule in (SILENT, "unknown"), name


def test_the_registry_needs_no_mlir() -> None:
    code = "import sys, pyshardy.rules.ops, pyshardy.rules.table; print('jaxlib' in sys.modules, 'jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"
