from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyshardy
from pyshardy.core.notation import parse_sharding
from pyshardy.ir.functions import main_function
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import module_meshes
from pyshardy.passes.flow import partition_ending
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.propagation.options import PropagateOptions
from pyshardy.results.partitioning import partition_in_place
from pyshardy.results.sharded_program import import_program, propagate_in_place
from pyshardy.rules.properties import REDUCING_COLLECTIVES
from pyshardy.searching.program.layers import find_families, ops_in_layer_order, top_ops
from pyshardy.searching.program.search_program import short_program
from pyshardy.searching.program.shorten import BETWEEN, FIRST, LAST, MIDDLE, Short, part_of, shorten

from ..autopartition.problems import layered


def two_ways(layers: int) -> str:
    """Layers with a weight each, and a second pass over them in the opposite order, which uses what the first made."""
    shape = "tensor<8x8xf32>"
    arguments = ", ".join([f"%x: {shape}", *(f"%w{layer}: {shape}" for layer in range(layers))])
    lines, value = [], "%x"
    for layer in range(layers):
        lines += [
            f"%a{layer} = stablehlo.add {value}, %w{layer} : {shape}",
            f"%b{layer} = stablehlo.tanh %a{layer} : {shape}",
        ]
        value = f"%b{layer}"
    for layer in reversed(range(layers)):
        lines += [f"%c{layer} = stablehlo.multiply {value}, %a{layer} : {shape}",
                  f"%d{layer} = stablehlo.subtract %c{layer}, %w{layer} : {shape}",
                  f"%g{layer} = stablehlo.multiply %d{layer}, %d{layer} : {shape}"]  # fmt: skip
        value = f"%d{layer}"
    results = [value, *(f"%g{layer}" for layer in range(layers))]
    types = ", ".join([shape] * len(results))
    body = "\n".join(lines)
    return (
        f'sdy.mesh @mesh = <["a"=2]>\nfunc.func @main({arguments}) -> ({types}) {{\n{body}\n'
        f"return {', '.join(results)} : {types}\n}}"
    )


def test_what_runs_backward_is_of_the_same_layers() -> None:
    (family,) = find_families(pyshardy.load(two_ways(9)).root)
    assert [(one.stretch.period, one.stretch.rounds, one.sign) for one in family.stretches] == [(2, 9, 1), (3, 9, -1)]
    assert [one.layer(0) for one in family.stretches] == [0, 8]
    assert family.size == 9


def test_few_layers_are_no_family() -> None:
    assert find_families(pyshardy.load(two_ways(3)).root) == ()


def test_layers_of_two_kinds_are_two_families() -> None:
    shape = "tensor<8x8xf32>"
    lines = [f"%a{at + 1} = stablehlo.tanh %a{at} : {shape}" for at in range(6)]
    lines += [f"%a{at + 1} = stablehlo.negate %a{at} : {shape}" for at in range(6, 14)]
    text = f"func.func @main(%a0: {shape}) -> {shape} {{\n" + "\n".join(lines) + f"\nreturn %a14 : {shape}\n}}"
    assert sorted(family.size for family in find_families(pyshardy.load(text).root)) == [6, 8]


def in_another_order(order: Sequence[int], waiting: bool = False) -> pyshardy.Module:
    """Twenty layers forward and backward, of which an optimizer updates some in this order, as flax's does.

    Args:
        order: The layers.
        waiting: Whether each update waits for the one before.
    """
    shape, before = "tensor<8x8xf32>", two_ways(20).rpartition("return")[0]
    lines, read = [], ""
    for at in order:
        lines.append(f"%u{at} = stablehlo.subtract {read or f'%w{at}'}, %g{at} : {shape}")
        read = f"%u{at}" if waiting else ""
    results = [f"%u{at}" for at in sorted(order)]
    types = ", ".join([shape] * len(results))
    text = f"{before.replace(', '.join([shape] * 21), types)}{chr(10).join(lines)}"
    return pyshardy.load(f"{text}\nreturn {', '.join(results)} : {types}\n}}")


def test_layers_that_come_in_another_order_later_are_put_in_order() -> None:
    """As flax's optimizer, which updates `block_10` before `block_2`."""
    module = in_another_order([0, 1, *range(10, 20), *range(2, 10)])
    (family,) = find_families(module.root)
    assert (family.first, family.last) == (0, 19)
    ops, weights = ops_in_layer_order(module.root, [family]), main_function(module.root).region.blocks[0].args[1:]
    (update,) = [one for one in family.stretches if one.order is not None]
    assert [ops[update.stretch.start + round_].operands[0] for round_ in range(20)] == list(weights)
    assert ops != top_ops(module.root) and set(ops) == set(top_ops(module.root))
    with module.context:
        short = shorten(module.root, [family], {0: 1})
    assert len(short.inputs) == 1 + 3 and len(short.outputs) == 3


def test_updates_that_wait_for_each_other_keep_their_order() -> None:
    module = in_another_order([*range(10, 20), *range(2, 10)], waiting=True)
    families = find_families(module.root)
    assert all(one.order is None for family in families for one in family.stretches)


def test_layers_of_which_some_are_missing_later_are_families_of_their_own() -> None:
    module = in_another_order([*range(11, 20), *range(2, 10)])
    found = find_families(module.root)
    assert [(one.first, one.last) for one in found] == [(2, 9), (11, 19)]
    assert all(one.ends == (family.first, family.last) for family in found for one in family.stretches)
    ops, weights = ops_in_layer_order(module.root, found), main_function(module.root).region.blocks[0].args[1:]
    for family in found:
        first = [ops[one.stretch.start].operands for one in family.stretches if one.stretch.period == 1]
        assert [operands[0] for operands in first] == [weights[family.first]]


def shortened(whole: pyshardy.Module, middle: bool = False) -> Short:
    """The program with two layers of each family, or three."""
    families = find_families(whole.root)
    with whole.context:
        return shorten(whole.root, families, dict.fromkeys(range(len(families)), int(middle)))


def described(root: Op) -> list[object]:
    """What a program computes of what, without names."""
    main = main_function(root)
    numbers = {value: number for number, value in enumerate(main.region.blocks[0].args)}
    found: list[object] = [[str(value.type) for value in numbers]]
    for op in main.region.blocks[0]:
        attrs = {name: str(value) for name, value in op.attrs.items()}
        found.append(
            (op.name, [numbers[value] for value in op.operands], attrs, [str(value.type) for value in op.results])
        )
        numbers.update({value: len(numbers) + index for index, value in enumerate(op.results)})
    return found


def test_what_stays_is_the_program_with_fewer_layers() -> None:
    for write in (two_ways, layered):
        whole, small = (pyshardy.load(write(layers)) for layers in (9, 3))
        short = shortened(whole, middle=True)
        parts = [part_of(op) for op in top_ops(short.root)]
        kinds = {part.kind for part in parts if part is not None}
        assert None not in parts and kinds <= {FIRST, MIDDLE, LAST, BETWEEN} and MIDDLE in kinds
        assert described(short.root) == described(small.root)
        assert described(shortened(whole).root) != described(small.root)


def test_two_layers_stay_without_one_in_the_middle() -> None:
    short = shortened(pyshardy.load(two_ways(9)))
    assert short.inputs == (0, 1, 9) and short.outputs == (0, 1, 9)


def test_the_memory_of_an_argument_goes_to_the_result_under_its_new_number() -> None:
    text = two_ways(9).replace("%w8: tensor<8x8xf32>", "%w8: tensor<8x8xf32> {tf.aliasing_output = 9 : i32}")
    text = text.replace("%w4: tensor<8x8xf32>", "%w4: tensor<8x8xf32> {tf.aliasing_output = 5 : i32}")
    short = shortened(pyshardy.load(text))
    attrs = short.root.region.block.last.attrs["arg_attrs"]
    assert [str(entry.get("tf.aliasing_output")) for entry in attrs] == ["None", "None", "2 : i32"]


def test_passes_hand_on_the_part_of_the_op_that_they_serve() -> None:
    """Also collectives, and what else passes make, say in which layer they are."""
    whole = pyshardy.load(layered(9))
    short = shortened(whole, middle=True)
    found = import_program(whole.with_root(short.root), PropagateOptions()).annotated(
        [("arg_attrs", place, parse_sharding('<@mesh, [{"model"}, {}]>')) for place in range(1, len(short.inputs))]
    )
    propagate_in_place(found)
    meshes = module_meshes(found.root)
    partition_in_place(whole, found.root, meshes, partition_ending(found.applied, PartitionOptions()))
    collectives = [op for op in top_ops(found.root) if op.name in REDUCING_COLLECTIVES]
    kinds = Counter((op.name, part.kind) for op, part in zip(collectives, map(part_of, collectives)) if part)
    assert set(kinds) == {(op.name, kind) for op in collectives for kind in (FIRST, MIDDLE, LAST)}
    assert sum(kinds.values()) == len(collectives) >= 3 and len(set(kinds.values())) == 1


def test_a_program_without_layers_says_nothing_of_parts() -> None:
    short = shortened(pyshardy.load(two_ways(3)), middle=True)
    assert not any(map(part_of, top_ops(short.root)))


def converted(layers: int) -> str:
    """Layers whose weights a step converts first, and a backward pass that computes them again."""
    small = "tensor<8x8xbf16>"
    types = [f"tensor<8x8x{('f32', 'f16')[layer % 2]}>" for layer in range(layers)]
    arguments = ", ".join([f"%x: {small}", *(f"%w{layer}: {type}" for layer, type in enumerate(types))])
    lines = [f"%c{layer} = stablehlo.convert %w{layer} : ({type}) -> {small}" for layer, type in enumerate(types)]
    value = "%x"
    for layer in range(layers):
        lines += [f"%a{layer} = stablehlo.add {value}, %c{layer} : {small}",
                  f"%b{layer} = stablehlo.tanh %a{layer} : {small}"]  # fmt: skip
        value = f"%b{layer}"
    kept = ["%x", *(f"%b{layer}" for layer in range(layers))]
    for layer in reversed(range(layers)):
        lines += [f"%p{layer}:3 = stablehlo.optimization_barrier {kept[layer]}, %c{layer}, {value} "
                  f": {small}, {small}, {small}",
                  f"%r{layer} = stablehlo.add %p{layer}#0, %p{layer}#1 : {small}",
                  f"%t{layer} = stablehlo.tanh %r{layer} : {small}",
                  f"%d{layer} = stablehlo.multiply %t{layer}, %p{layer}#2 : {small}"]  # fmt: skip
        value = f"%d{layer}"
    body = "\n".join(lines)
    return (
        f'sdy.mesh @mesh = <["a"=2]>\nfunc.func @main({arguments}) -> {small} {{\n{body}\nreturn {value} : {small}\n}}'
    )


def test_weights_that_are_converted_first_tell_layers_apart() -> None:
    """What is computed again in the backward pass uses the layer before: the weights say which layer it is of."""
    layers = 6
    (family,) = find_families(pyshardy.load(converted(layers)).root)
    assert [(one.stretch.period, one.sign, one.layer(0)) for one in family.stretches] == [
        (2, 1, 0),
        (4, -1, layers - 1),
    ]
    assert family.size == layers


def test_converted_weights_of_layers_that_are_left_out_are_left_out() -> None:
    module = pyshardy.load(converted(7))
    with module.context:
        short, _ = short_program(module.root)
    assert short.inputs == (0, 1, 2, 7)  # the first layer, the one that stands for others, and the last one
    converts = [op for op in top_ops(short.root) if op.name == "stablehlo.convert"]
    parts = [part_of(op) for op in converts]
    assert [part.kind for part in parts if part is not None] == [FIRST, MIDDLE, LAST]
    assert len({part.offset for part in parts if part is not None}) == 1


def test_behind_a_backward_pass_the_middle_stands_for_what_is_left_out() -> None:
    """The update of a layer may begin with the gradient that the layer before it needs, as that of a bias."""
    shape, count = "tensor<8x8xf32>", 9
    before = two_ways(count).rpartition("return")[0].replace(", ".join([shape] * (count + 1)), ", ".join([shape] * 8))
    lines = []
    for at in range(1, count):
        lines += [
            f"%u{at} = stablehlo.add %g{at - 1}, %w{at} : {shape}",
            f"%v{at} = stablehlo.divide %u{at}, %w{at} : {shape}",
        ]
    results = f"return {', '.join(f'%v{at}' for at in range(1, count))} : {', '.join([shape] * 8)}"
    short = shortened(pyshardy.load(f"{before}{chr(10).join(lines)}\n{results}\n}}"), middle=True)
    ops = main_function(short.root).region.blocks[0]
    gradients = {
        part.kind: op for op in ops
        if op.name == "stablehlo.multiply" and op.operands[0] is op.operands[1] and (part := part_of(op)) is not None
    }  # fmt: skip
    readers = {kind: [user.name for user in op.result.users()] for kind, op in gradients.items()}
    assert readers[MIDDLE] == ["stablehlo.add"]
    assert {FIRST, MIDDLE, LAST} <= set(readers)
