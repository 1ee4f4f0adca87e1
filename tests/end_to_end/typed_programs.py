"""Random programs in all element types that return everything they compute."""

from __future__ import annotations

import re
from math import prod
from random import Random

from differential.draw import Draw
from differential.random_programs import Features, random_program
from differential.rule_instances import MESH
from end_to_end.typed_ops import IS_MOVE, TYPED, Large
from end_to_end.typed_reductions import combiners, with_elements

from pyshardy.core.identities import identity_text, zero_text
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.reduction_kinds import combiners as combiners_of

CHAIN_ELEMENTS = ("i8", "i16", "i32", "i64", "ui8", "ui32")
_NOT_JOINED = frozenset(["arithmetic", "branch", "convert", "dot_general", "iota", "reduce", "sort", "transpose"])
"""Kinds of ops of which XLA does not make one that joins single elements."""
_FEW = 100
_OPAQUE = frozenset(["unknown"])
_INTEGER_OPS = {"tanh": "not", "exponential": "popcnt", "sine": "negate"}


def kind_of(seed: int) -> str:
    """The kind of op of a program; "chain" for one of a dozen ops."""
    return "chain" if seed % 4 == 3 else TYPED[_which(seed)].__name__


def _which(seed: int) -> int:
    return (seed - seed // 4) % len(TYPED)


def is_move(seed: int) -> bool:
    """Whether the program computes nothing but moves data."""
    return kind_of(seed) in IS_MOVE


def _start_neutrally(module: Module, root: Op, may_start: bool) -> None:
    """Let reductions start from what changes nothing: always those of one element, of many, or of several joined ones.

    XLA takes what a reduction starts from for something that changes nothing, and leaves it out there, or counts it
    several times.
    """
    for op in [op for op in walk(root) if op.name == "stablehlo.reduce"]:
        shape, names, count = op.operands[0].type.shape or (), combiners_of(op), len(op.results)
        size = prod(shape[dim] for dim in op.attrs["dimensions"])
        if names is None or (may_start and 1 < size <= _FEW):
            continue
        for index, name in enumerate(names):
            type = op.operands[count + index].type
            text = identity_text(name, type.element)
            assert text is not None
            op.set_operand(count + index, Builder(module.attrs, op, op.location).splat(text, type))


def unsharded(seed: int) -> tuple[str, Random]:
    """A program without shardings, and the source of further choices."""
    draw = (Large if seed % 7 == 0 else Draw)(f"typed {seed}")
    is_chain = kind_of(seed) == "chain"
    module = Module.parse(_chain(draw) if is_chain else _one_op(seed, draw))
    root = module.copy_root()
    with module.context:
        if not is_chain:
            _complete(module, main_function(root), draw, not is_move(seed))
        _start_neutrally(module, root, kind_of(seed) in _NOT_JOINED)
        return module.with_root(root).text(generic=True), draw


def _one_op(seed: int, draw: Draw) -> str:
    return MESH + TYPED[_which(seed)](draw).replace("@NAME", "@main", 1)


def _complete(module: Module, main: Op, draw: Draw, may_compute: bool) -> None:
    """Compute something before the op if that may be, and reduce some of what it gives; all of it is returned."""
    if may_compute:
        _change_inputs(module, main, draw)
    _reduce_results(module, main, draw)
    return_everything(module, main)


def _change_inputs(module: Module, main: Op, draw: Draw) -> None:
    """Compute some of the arguments, so that padding is no longer zero."""
    block = main.region.blocks[0]
    first = next(iter(block))
    for arg in block.args:
        if draw.flag(0.4):
            builder = Builder(module.attrs, first, first.location)
            is_truth = arg.type.element == "i1"
            made = builder.value("not" if is_truth else "negate", [arg], arg.type)
            arg.replace_other_uses(made.owner)


def _reduce_results(module: Module, main: Op, draw: Draw) -> None:
    """Reduce some of what the last op gives, from any initial value, which must leave padding out."""
    end = main.region.blocks[0].terminator
    assert end.prev is not None
    for value in end.prev.results:
        if not value.type.is_ranked_tensor or not value.type.rank or draw.flag():
            continue
        _reduce(Builder(module.attrs, end, end.location), value, draw)


def _reduce(builder: Builder, value: Value, draw: Draw) -> None:
    shape, element = value.type.shape or (), value.type.element
    dims = draw.subset(range(len(shape)), at_least=1)
    kept = builder.like([size for dim, size in enumerate(shape) if dim not in dims], value.type)
    scalar = builder.type((), element)
    name = draw.choice([name for name in combiners(element) if name != "multiply"])
    start = builder.splat(zero_text(element), scalar)
    made = builder.op("reduce", [value, start], [kept], {"dimensions": builder.array(dims)}, 1)
    builder.body(made, [scalar, scalar], lambda inner, args: [inner.combine(name, *args)])


def return_everything(module: Module, main: Op) -> None:
    """Let a function that returns nothing return what all its ops give."""
    block = main.region.blocks[0]
    values = [
        result
        for op in block
        if op.name != "stablehlo.constant"
        for result in op.results
        if result.type.is_ranked_tensor and result.type.is_static
    ]
    end = block.terminator
    Op("func.return", values, (), {}, location=end.location).insert_before(end)
    end.erase()
    given = ", ".join(str(arg.type) for arg in block.args)
    main.set_attr(
        "function_type", module.attrs.parse(f"({given}) -> ({', '.join(str(value.type) for value in values)})")
    )


def _chain(draw: Draw) -> str:
    """A dozen ops on integers, of which reductions, initial values and indices vary."""
    features = Features(
        ops=draw.randint(3, 12), control_flow=0.1, groups=0, annotated=0, manual=0, calls=0.06, without=_OPAQUE
    )
    element = draw.choice(CHAIN_ELEMENTS)
    text = random_program(draw.randrange(2**32), features)

    def number(low: int) -> str:
        return str(draw.randint(low, 5))

    text = re.sub(r"dense<0>(?= : tensor<(\d+x)*i32>)", lambda _: f"dense<{number(-2)}>", text)
    text = re.sub(r"dense<\d\.0>", lambda _: f"dense<{number(0 if element.startswith('u') else -3)}>", text)
    text = re.sub(r"(?<=applies stablehlo.)add", lambda _: draw.choice(combiners(element)), text)
    for name, other in _INTEGER_OPS.items():
        text = text.replace(f"stablehlo.{name}", f"stablehlo.{other}")
    return with_elements(text, element)
