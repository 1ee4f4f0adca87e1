"""The registry of ops: every op has one line, every line says all traits, and no file keeps sets of its own beside it."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyshardy.ir.opspec import CONTEXT_READERS, DECODERS
from pyshardy.rules.ops import FAMILIES, FOREIGN_POINTWISE, OPS, names_of
from pyshardy.rules.traits import ROOMS, SILENT, Elementwise, OpTraits, Priority
from support.op_traits import PARAMETERS, doubled, ops_of_dialect, problems

PACKAGE = Path(__file__).parent.parent / "pyshardy"
LINES = [line for lines in FAMILIES.values() for line in lines]
DIALECTS = ("stablehlo", "chlo", "sdy")


def test_no_op_has_two_lines() -> None:
    assert doubled(LINES) == []
    assert {name for line in LINES for name in names_of(line)} == set(OPS)


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
    assert problems({name: line[2] for line in lines for name in names_of(line)}, ["toy.sin", "toy.exp"]) == [
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
        ({"rule": "pointwise"}, "rule 'pointwise' is not a function"),
        ({"pad": "control:pad_signature"}, "pad 'control:pad_signature' takes ('function', 'padder'), not"),
        ({"local": "checks:is_known"}, "local 'checks:is_known' is not in pyshardy.transforms.local"),
        ({"pure": "often"}, "pure 'often' is none of"),
        ({"attributes": {"size": "figures"}}, "attribute size has the decoder 'figures', which"),
        ({"context_facts": "far"}, "context_facts is 'far', which"),
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
    assert {traits.context_facts for traits in OPS.values() if traits.context_facts} == set(CONTEXT_READERS)


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


# Sets of ops beside the registry

ROOMS_OF_PASSES = ("ir", "passes", "propagation", "reshard", "rules", "transforms")
OWN_MATTER = {
    "ir/codecs.py": "how attributes are stored",
    "ir/cost_kinds.py": "attributes that costs depend on",
    "ir/hlo_attributes.py": "what HLO's printer does",
    "ir/opspec.py": "which bodies of a scatter its rule takes as plain",
    "ir/traffic.py": "the collectives by their kinds",
    "ir/trip_counts.py": "the arithmetic of loop counters",
    "transforms/reshards/batches.py": "what custom calls are called",
    "transforms/rewriting/greedy.py": "MLIR's rewriting",
    "transforms/rewriting/patterns.py": "a list of patterns",
    "transforms/rewriting/unlabelled.py": "a list of patterns",
    "passes/exporting/remove_propagation_debug_info.py": "names of attributes",
    "passes/importing/constant_or_scalar_splitter.py": "what it copies",
    "passes/importing/explicit_gather_scatter_batching.py": "what it looks through for an iota",
    "passes/importing/import_spmd_regions.py": "what it moves",
    "transforms/reshards/causes.py": "what causes of reshards are called",
    "transforms/reshards/written_collectives.py": "which collectives move data alone",
    "passes/partitioning/gather_before.py": "what it looks through",
    "passes/partitioning/insert_explicit_reshards.py": "what the version that is not full looks at",
    "transforms/padding/control.py": "what it checks in the end",
    "passes/partitioning/per_instruction_partitioning.py": "what it leaves out",
    "transforms/reduction_kinds.py": "which bodies reduce how",
    "passes/partitioning/resolve_permutation_factors.py": "what it looks at",
    "transforms/reshards/single_dims.py": "what it is about",
    "ir/source_values.py": "what JAX writes for a gradient that has several parts",
    "transforms/single_op_module.py": "where it cuts",
    "transforms/code_changes.py": "what code in JAX is lowered to",
    "transforms/row_numbers.py": "how JAX writes indices",
    "passes/partitioning/known_indices.py": "the two ops that it rewrites",
    "passes/partitioning/verify_unreduced_axes.py": "what it does not check",
    "passes/pipelines.py": "what passes run on",
    "passes/xla/expand.py": "a list of expansions",
    "passes/xla/import_result_sharding.py": "two attributes of two ops",
    "transforms/xla/layouts.py": "which operand a layout comes from",
    "passes/xla/legalize_chlo.py": "what XLA renames",
    "transforms/xla/simplifications/constants.py": "how constants fold",
    "transforms/xla/simplifications/elementwise.py": "a list of simplifications",
    "transforms/xla/simplifications/shape.py": "how reductions of constants fold",
    "transforms/xla/simplifications/table.py": "a list of simplifications",
}
"""Files that list names of ops, and why that is no trait: nobody else asks for it."""


def listed_ops(source: str) -> Iterator[str]:
    """The places of a source where several names of ops stand together, or are put together."""
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.expr | None] = []
        if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            parts = [*node.elts]
        elif isinstance(node, ast.Dict):
            parts = [*node.keys]
        names = [part.value for part in parts if isinstance(part, ast.Constant) and part.value in OPS]
        if len(names) > 1:
            yield f"line {node.lineno}: {', '.join(map(str, names))}"  # type: ignore[attr-defined]
        elif isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
            text = ast.unparse(node.key if isinstance(node, ast.DictComp) else node.elt)
            if re.match(r"f'(stablehlo|chlo|mhlo|sdy)\.\{", text):
                yield f"line {node.lineno}: {text}"


@pytest.mark.slow
def test_no_pass_keeps_a_set_that_could_be_a_trait() -> None:
    found = {
        str(path.relative_to(PACKAGE)): list(listed_ops(path.read_text()))
        for room in ROOMS_OF_PASSES
        for path in sorted((PACKAGE / room).rglob("*.py"))
        if path != PACKAGE / "rules/ops.py"
    }
    assert {path: places for path, places in found.items() if places and path not in OWN_MATTER} == {}
    assert [path for path in OWN_MATTER if not found[path]] == []


@pytest.mark.parametrize(
    "source",
    [
        'A = frozenset(("stablehlo.dot", "stablehlo.dot_general"))',
        'if op.name in ("sdy.reshard", "sdy.sharding_constraint"):\n    pass',
        'A = {"stablehlo.pad": 1, "stablehlo.slice": 2}',
        'A = frozenset(f"stablehlo.{name}" for name in ("dot", "pad"))',
    ],
)
def test_a_set_is_noticed(source: str) -> None:
    assert len(list(listed_ops(source))) == 1
    assert list(listed_ops(source.replace("stablehlo.", "my.").replace("sdy.", "my."))) == []
