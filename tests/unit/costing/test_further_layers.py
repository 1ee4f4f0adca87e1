"""Layers for which one stands: the estimate is that of the program with all of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from jaxlib.mlir import ir

from pyshardy.costing.chips import find_hardware
from pyshardy.costing.further_layers import FIRST, LAST, MIDDLE, OUTSIDE, Layer, in_order, with_further_layers
from pyshardy.costing.kernels import Kernel
from pyshardy.costing.launches import launches_of
from pyshardy.costing.program import CostOp
from pyshardy.costing.step_cost import step_cost
from pyshardy.costing.topology import make_topology
from pyshardy.errors import UsageError
from pyshardy.ir.cost_program import NodePlace

from .build import described

TOPOLOGY = make_topology(find_hardware("h100"), (("x", 2),))
MATRIX = "tensor<1024x1024xf32>"
WHOLE = 7


def product(left: str, right: str) -> str:
    return f"stablehlo.dot_general {left}, {right}, contracting_dims = [1] x [0] : ({MATRIX}, {MATRIX}) -> {MATRIX}"


def program(names: list[str]) -> str:
    """A forward and a backward pass over layers with these names, which share one more weight."""
    last = len(names)
    inputs = [f"%w{at}: {MATRIX}" for at in range(last)]
    lines = []
    for at, name in enumerate(names):
        lines += [
            f'%p{at} = {product(f"%x{at}", f"%w{at}")} loc("{name} 0")',
            f'%q{at} = {product(f"%p{at}", "%shared")} loc("{name} 1")',
            f'%x{at + 1} = stablehlo.tanh %q{at} : {MATRIX} loc("{name} 2")',
        ]
    lines.append(f"%g{last} = stablehlo.multiply %x{last}, %x{last} : {MATRIX}")
    for at in reversed(range(last)):
        lines += [
            f'%d{at} = {product(f"%x{at}", f"%g{at + 1}")} loc("{names[at]} 3")',
            f'%g{at} = {product(f"%g{at + 1}", f"%w{at}")} loc("{names[at]} 4")',
        ]
    results = [f"%d{at}" for at in range(last)]
    types = ", ".join([MATRIX] * last)
    return f"""
      func.func @main(%x0: {MATRIX}, %shared: {MATRIX}, {", ".join(inputs)}) -> ({types}) {{
        {chr(10).join(lines)}
        return {", ".join(results)} : {types}
      }}"""


PLACES = {"first": FIRST, "middle": MIDDLE, "last": LAST}


def layer_of(op: CostOp) -> Layer:
    location = op.place.node.location if isinstance(op.place, NodePlace) else None
    if not isinstance(location, ir.NameLoc) or not location.name_str.startswith(tuple(PLACES)):
        return OUTSIDE
    name, number = location.name_str.split()
    is_backward = int(number) > 2
    count = WHOLE - 2 if name == "middle" else 1
    return Layer(0, int(is_backward), -1 if is_backward else 1, PLACES[name], int(number), count)


SHORT = program(["first", "middle", "last"])


@pytest.mark.parametrize("chip", ["h100", "v5e"])
def test_the_estimate_is_that_of_all_layers(chip: str) -> None:
    topology = make_topology(find_hardware(chip), (("x", 2),))
    found = step_cost(described(SHORT), topology, layer_of=layer_of)
    right = step_cost(described(program([str(at) for at in range(WHOLE)])), topology)
    assert found.seconds == pytest.approx(right.seconds, rel=1e-9)
    assert found.bytes == right.bytes
    assert step_cost(described(SHORT), topology).seconds < 0.6 * right.seconds


def test_every_layer_reads_the_one_beside_it_and_what_all_share() -> None:
    launches = with_further_layers(launches_of(described(SHORT), TOPOLOGY), layer_of)
    whole = launches_of(described(program([str(at) for at in range(WHOLE)])), TOPOLOGY)
    assert _links(launches.block.kernels, launches.block.arguments) == _links(
        whole.block.kernels, whole.block.arguments
    )
    assert len(launches.block.results) == len(launches.program.inputs) - 2 == WHOLE


def _links(kernels: tuple[Kernel, ...], arguments: tuple[int, ...]) -> list[tuple[str, list[int]]]:
    """The kernels, and of everything that they read the position of what makes it; arguments have negative ones."""
    places: Mapping[int, int] = {value: at - len(arguments) for at, value in enumerate(arguments)}
    places = {**places, **{value: at for at, kernel in enumerate(kernels) for value in kernel.writes}}
    return [(kernel.root.kind.name, [places[value] for value in kernel.needs]) for kernel in kernels]


def with_shared_value(names: list[str]) -> str:
    """The program with a product of unknown position in each layer, which also reads what the first one makes."""
    text = program(names)
    made = f'%h = stablehlo.tanh %shared : {MATRIX} loc("{names[0]} 5")'
    text = text.replace("{\n        %p0", f"{{\n        {made}\n        %p0")
    for at, name in enumerate(names):
        line = f'%x{at + 1} = stablehlo.tanh %q{at} : {MATRIX} loc("{name} 2")'
        text = text.replace(line, f"%r{at} = {product(f'%q{at}', '%h')}\n{line.replace(f'%q{at}', f'%r{at}')}")
    return text


def test_a_kernel_of_unknown_position_is_where_the_last_one_is_that_it_reads() -> None:
    def known(op: CostOp) -> Layer | None:
        found = layer_of(op)
        return None if found is OUTSIDE and op.kind.name == "stablehlo.dot_general" else found

    short, whole = (
        with_shared_value(names) for names in (["first", "middle", "last"], [str(at) for at in range(WHOLE)])
    )
    assert short.count("%h") == 4
    found = step_cost(described(short), TOPOLOGY, layer_of=known)
    right = step_cost(described(whole), TOPOLOGY)
    assert found.seconds == pytest.approx(right.seconds, rel=1e-9)
    assert found.bytes == right.bytes


def test_a_program_without_layers_stays_as_it_is() -> None:
    launches = launches_of(described(SHORT), TOPOLOGY)
    assert with_further_layers(launches, lambda op: OUTSIDE) is launches


def test_kernels_come_after_what_they_read() -> None:
    kernels = launches_of(described(SHORT), TOPOLOGY).block.kernels
    assert in_order(kernels) == list(kernels)
    found = in_order(kernels[::-1])
    makers = {value: at for at, kernel in enumerate(found) for value in kernel.writes}
    assert len(found) == len(kernels) and set(makers) == {value for one in kernels for value in one.writes}
    assert all(makers.get(value, -1) < at for at, kernel in enumerate(found) for value in kernel.reads)
    first, second = kernels[:2]
    with pytest.raises(UsageError, match="wait for each other"):
        in_order([first._replace(reads=second.writes), second._replace(reads=first.writes)])
