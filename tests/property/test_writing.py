"""A module written as bytecode is the one written op by op, whatever attributes its ops had and have."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from pyshardy.core.notation import parse_sharding
from pyshardy.ir.module import Module
from pyshardy.rules.notation import parse_rule
from support.writing import asm, emitted

SHARDING, RULE, NOTE, INHERENT = "sdy.sharding", "sdy.sharding_rule", "some.note", "permutation"
SHARDINGS = [(parse_sharding(text),) for text in ('<@m, [{"x"}]>', "<@m, [{}]>")]
RULES = [parse_rule(f"<([i])->([i]) {{i=8}}{end}>") for end in ("", ", custom")]
NAMES = ["stablehlo.sine", "stablehlo.cosine", "stablehlo.transpose"]


DICTIONARIES = st.fixed_dictionaries({}, optional={name: st.integers(0, 1) for name in (SHARDING, RULE, NOTE)})
"""Which of two values some attributes have."""


CHANGES = st.one_of(
    st.dictionaries(st.sampled_from([SHARDING, RULE, NOTE]), st.integers(0, 1), max_size=1), DICTIONARIES
)
"""What becomes of them: mostly, one is added or gets another value."""


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, dict[str, int], dict[str, int], bool]]:
    """Per op its name, its attributes before and after, and whether a copy gets those; few kinds, as in a program."""
    kinds = draw(st.lists(st.tuples(st.sampled_from(NAMES), DICTIONARIES), min_size=1, max_size=2))
    found = []
    for name, before in draw(st.lists(st.sampled_from(kinds), min_size=6, max_size=12)):
        is_copied, is_emptied = draw(st.sampled_from([(False, False)] * 4 + [(True, False), (False, True)]))
        found.append((name, before, ({} if is_emptied else before) | draw(CHANGES), is_copied))
    return found


@given(programs())
@settings(max_examples=2 * settings().max_examples)
def test_ops_of_any_attributes_before_and_after(ops: list[tuple[str, dict[str, int], dict[str, int], bool]]) -> None:
    module = Module.parse(text([(name, before) for name, before, _, _ in ops]))
    root = module.copy_root()
    with module.context, ir.Location.unknown():
        block = root.region.block.terminator.region.block
        for op, (_, before, after, is_copied) in zip(list(block), ops):
            changed = op.clone().insert_after(op) if is_copied else op
            inherent = {key: value for key, value in changed.attrs.items() if key == INHERENT}
            kept = {key: changed.attrs[key] for key in after if before.get(key) == after[key]}
            changed.replace_attrs(inherent | {key: value_of(key, number) for key, number in after.items()} | kept)
        found = emitted(module, root)
        expected = Module.parse(text(lines(ops)))
        assert found.count(SHARDING) == asm(expected.mlir).count(SHARDING)


def lines(ops: list[tuple[str, dict[str, int], dict[str, int], bool]]) -> list[tuple[str, dict[str, int]]]:
    """What is there afterwards."""
    found = []
    for name, before, after, is_copied in ops:
        found += [(name, before), (name, after)] if is_copied else [(name, after)]
    return found


def value_of(key: str, number: int) -> Any:
    if key == NOTE:
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)
    return (SHARDINGS if key == SHARDING else RULES)[number]


def text(ops: list[tuple[str, dict[str, int]]]) -> str:
    """A program of ops with attributes."""
    written = {
        SHARDING: [f"#sdy.sharding_per_value<[{found[0]}]>" for found in SHARDINGS],
        RULE: [f"#sdy.op_sharding_rule<([i])->([i]) {{i=8}}{end}>" for end in ("", ", custom")],
        NOTE: ["0 : i32", "1 : i32"],
    }
    body = ""
    for name, attrs in ops:
        dictionary = ", ".join(f"{key} = {written[key][number]}" for key, number in sorted(attrs.items()))
        inherent = "<{permutation = array<i64: 0>}> " if name == "stablehlo.transpose" else ""
        body += f'  "{name}"(%a) {inherent}{{{dictionary}}} : (tensor<8xf32>) -> tensor<8xf32>\n'
    return f'sdy.mesh @m = <["x"=2]>\nfunc.func @main(%a: tensor<8xf32>) {{\n{body}  return\n}}'
