"""Which ops are element-wise, and which preserve constants, is what the reference shows by what it does with them.

Every op of some dialects that has a form on plain 8x8 tensors is tried, in one module per question.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from typing import NamedTuple

import pytest
from jaxlib.mlir import ir

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.context import make_context
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.read import read_module
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.properties import Priority, preserves_constants, priority_of
from support.reference import jaxlib_version, run_reference

DIALECTS = ("stablehlo", "chlo", "mhlo", "arith", "math")
# MLIR folds these away where they change nothing, as in the probes.
FOLDED = ("mhlo.bitcast", "mhlo.concatenate", "mhlo.convert", "mhlo.reshape")

TYPES = {
    letter: f"tensor<8x8x{element}>"
    for letter, element in {
        "f": "f32", "d": "f64", "h": "bf16", "g": "f16", "i": "i32", "l": "i64", "s": "i8", "b": "i1", "x": "index",
        "c": "complex<f32>",
    }.items()
}  # fmt: skip
CONSTANTS = {"f": "3.5", "i": "7", "h": "3.5", "b": str([[True, False] * 4] * 8).lower()}
FORMS = """
    f->f ff->f i->i ii->i c->c fff->f bff->f f->b ff->c i->f f->i f->d f->h h->g i->l i->x i->b i->s fi->f fi->s ff->d
    ff->h ii->ib ii->ii f->ff
"""
ATTRIBUTES = (
    "comparison_direction = #stablehlo<comparison_direction EQ>",
    "comparison_direction = #mhlo<comparison_direction EQ>",
    "comparison_direction = #chlo<comparison_direction EQ>",
    "predicate = 0 : i64",
    "exponent_bits = 5 : i32, mantissa_bits = 10 : i32",
    "value = 1.0 : f32",
    "permutation = array<i64: 0, 1>",
    "dimension = 0 : i64",
    "dimensions = array<i64: 0>",
    "dimensions = dense<0> : tensor<1xi64>",
)


class Form(NamedTuple):
    """An op with the letters of its operand and result types, and its attributes."""

    name: str
    operands: str
    results: str
    attributes: str

    def line(self, values: str, more: str = "") -> str:
        """The op on some values; its results are `%r`."""
        results = "%r" if len(self.results) == 1 else f"%r:{len(self.results)}"
        attributes = ", ".join(part for part in (self.attributes, more) if part)
        operand_types = ", ".join(TYPES[letter] for letter in self.operands)
        result_types = ", ".join(TYPES[letter] for letter in self.results)
        return f'  {results} = "{self.name}"({values}) {{{attributes}}} : ({operand_types}) -> ({result_types})'

    def returns(self, times: int) -> str:
        """A return of the first result, so many times."""
        used = "%r" if len(self.results) == 1 else "%r#0"
        return f"  return {', '.join([used] * times)} : {', '.join([TYPES[self.results[0]]] * times)}\n"


def _forms_to_try(name: str) -> list[Form]:
    plain = [form.split("->") for form in FORMS.split()]
    found = [Form(name, operands, results, "") for operands, results in plain]
    return found + [Form(name, *form, attributes) for attributes in ATTRIBUTES for form in plain[:8]]


def _is_valid(form: Form) -> bool:
    arguments = ", ".join(f"%a{index}: {TYPES[letter]}" for index, letter in enumerate(form.operands))
    values = ", ".join(f"%a{index}" for index in range(len(form.operands)))
    try:
        ir.Module.parse(f"func.func @f({arguments}) {{\n{form.line(values)}\n  return\n}}")
    except ir.MLIRError:
        return False
    return True


@cache
def forms() -> tuple[Form, ...]:
    """The first valid form of every op of the dialects, where there is one."""
    found = []
    with make_context(), ir.Location.unknown():
        for dialect in DIALECTS:
            generated = importlib.import_module(f"jaxlib.mlir.dialects._{dialect}_ops_gen")
            classes = [value for value in vars(generated).values() if hasattr(value, "OPERATION_NAME")]
            for name in dict.fromkeys(value.OPERATION_NAME for value in classes):
                found += [form for form in _forms_to_try(name) if _is_valid(form)][:1]
    return tuple(found)


def _ops_by_function(text: str) -> list[list[Op]]:
    with make_context(), ir.Location.unknown():
        root = read_module(ir.Module.parse(text), AttrTable())
        return [list(walk(op)) for op in root.region.block if op.name == "func.func"]


def _priority_probe(form: Form, number: int) -> str:
    """A dot before the op: its result takes the op's sharding if the op goes first, and its own operand's if not."""
    first = TYPES[form.operands[0]]
    others = "".join(f", %a{index}: {TYPES[letter]}" for index, letter in enumerate(form.operands) if index)
    values = ", ".join(["%0", *(f"%a{index}" for index in range(1, len(form.operands)))])
    mappings = ["[i, j]"] * len(form.operands), ["[i, j]"] * len(form.results)
    rule = f"<({', '.join(mappings[0])})->({', '.join(mappings[1])}) {{i=8, j=8}}, custom>"
    sharding = ", ".join(['<@mesh, [{?}, {"p", ?}]>'] * len(form.results))
    attributes = (
        f"sdy.sharding_rule = #sdy.op_sharding_rule{rule}, sdy.sharding = #sdy.sharding_per_value<[{sharding}]>"
    )
    return (
        f'func.func @f{number}(%l: {first} {{sdy.sharding = #sdy.sharding<@mesh, [{{"p"}}, {{?}}]>}}, %m: {first}'
        f'{others}) -> {TYPES[form.results[0]]} {{\n  %0 = "stablehlo.dot"(%l, %m) : ({first}, {first}) -> {first}\n'
        f"{form.line(values, attributes)}\n{form.returns(1)}}}\n"
    )


def _goes_first(ops: list[Op]) -> bool:
    dot = next(op for op in ops if op.name == "stablehlo.dot")
    (sharding,) = dot.attrs["sdy.sharding"]
    return [bool(dim.axes) for dim in sharding.dims] == [False, True]


def test_element_wise_ops_go_first() -> None:
    tried = [form for form in forms() if form.operands[0] in "fidlchgs"]
    probes = "".join(_priority_probe(form, number) for number, form in enumerate(tried))
    text = f'sdy.mesh @mesh = <["p"=2]>\nfunc.func @main() {{\n  return\n}}\n{probes}'
    result = _ops_by_function(run_reference(text, "sdy-op-priority-propagate"))[1:]
    expected = {form.name: _goes_first(ops) for form, ops in zip(tried, result)}
    given = {form.name: priority_of(_spec(form)) is Priority.PASS_THROUGH for form in tried}
    assert expected == given
    assert 0 < sum(expected.values()) < len(expected)


def _spec(form: Form) -> OpSpec:
    return OpSpec(form.name, [(8, 8)] * len(form.operands), [(8, 8)] * len(form.results))


def _constant_probe(form: Form, number: int) -> str:
    """The op on constants, used twice: it is copied for every use if it preserves constants."""
    constants = "".join(
        f"  %k{index} = stablehlo.constant dense<{CONSTANTS[letter]}> : {TYPES[letter]}\n"
        for index, letter in enumerate(form.operands)
    )
    values = ", ".join(f"%k{index}" for index in range(len(form.operands)))
    type = TYPES[form.results[0]]
    return f"func.func @f{number}() -> ({type}, {type}) {{\n{constants}{form.line(values)}\n{form.returns(2)}}}\n"


def test_ops_that_preserve_constants_are_copied_for_every_use() -> None:
    tried = [form for form in forms() if set(form.operands) <= set(CONSTANTS) and form.name not in FOLDED]
    text = "".join(_constant_probe(form, number) for number, form in enumerate(tried))
    result = _ops_by_function(run_reference(text, "sdy-constant-or-scalar-splitter"))
    copies = {form.name: sum(op.name == form.name for op in ops) for form, ops in zip(tried, result)}
    expected = {name: count == 2 for name, count in copies.items()}
    assert set(copies.values()) == {1, 2}
    assert expected == {form.name: preserves_constants(_spec(form)) for form in tried}


def test_enough_ops_were_tried() -> None:
    assert len(forms()) > (240 if jaxlib_version() >= (0, 12) else 200)
    assert all(re.fullmatch(r"\w+\.[\w.-]+", form.name) for form in forms())


@pytest.mark.parametrize("name", ["stablehlo.tanh", "chlo.zeta", "mhlo.reverse", "arith.divsi", "math.fma"])
def test_the_forms_reach(name: str) -> None:
    assert name in {form.name for form in forms()}
