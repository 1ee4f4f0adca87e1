"""Cures are priced on a program with a few of its layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

import pyshardy
from pyshardy.checkup.annotating import OtherInputs
from pyshardy.checkup.families import families
from pyshardy.checkup.pricing import Pricer
from pyshardy.checkup.state import state_cures
from pyshardy.core.notation import parse_sharding
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import make_topology
from pyshardy.ir.shardings import module_meshes

LAYERS = 8
SHAPE = "tensor<1024x1024xf32>"


@pytest.fixture(scope="module")
def module() -> pyshardy.Module:
    """A step that updates the weights of equal layers, which are whole, with a batch that is split."""
    names = [f"layers[{at}]" for at in range(LAYERS)]
    arguments = ", ".join([
        f'%x: {SHAPE} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}',
        f'%b: {SHAPE} {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{}}]>}}',
        *(f'%w{at}: {SHAPE} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}} loc("{name}")' for at, name in enumerate(names)),
    ])  # fmt: skip
    lines, value = [], "%x"
    for at in range(LAYERS):
        lines += [
            f"%h{at} = stablehlo.dot_general {value}, %w{at}, contracting_dims = [1] x [0] : ({SHAPE}, {SHAPE}) -> {SHAPE}",
            f"%t{at} = stablehlo.tanh %h{at} : {SHAPE}",
            f"%u{at} = stablehlo.add %w{at}, %w{at} : {SHAPE}",
        ]
        value = f"%t{at}"
    results = ["%t7", "%b", *(f"%u{at}" for at in range(LAYERS))]
    types = ", ".join([SHAPE, SHAPE, *(f'{SHAPE} {{jax.result_info = "result[0][{at}]"}}' for at in range(LAYERS))])
    return pyshardy.load(
        f'sdy.mesh @mesh = <["x"=4, "y"=2]>\nfunc.func @main({arguments}) -> ({types}) {{\n'
        + "\n".join(lines)
        + f"\nreturn {', '.join(results)} : {', '.join([SHAPE] * len(results))}\n}}"
    )


@pytest.fixture
def pricer(module: pyshardy.Module) -> Iterator[Pricer]:
    mesh = next(one for one in module_meshes(module.root).values() if one.axes)
    yield Pricer(make_topology(find_hardware("h100"), mesh.axes), CollectiveModel.FORMULA)


def test_a_cure_costs_the_same_on_a_few_layers_and_on_all(module: pyshardy.Module, pricer: Pricer) -> None:
    mesh = next(one for one in module_meshes(module.root).values() if one.axes)
    cures = [one for one in state_cures(module, "mesh", mesh) if isinstance(one.apply, OtherInputs)]
    given = pricer.price(module)
    prices = set()
    for cure in cures:
        change = cure.apply
        whole = dataclasses.replace(cure, apply=lambda module, change=change: change(module))
        price = pricer.price(module, cure)
        assert price is not None and price == pricer.price(module, whole)
        found = pyshardy.cost(change(module), "h100")
        assert price.seconds == pytest.approx(found.step_seconds) and price.bytes == found.peak_bytes
        prices.add(price)
    assert given is not None and len(prices - {given}) >= 1


def test_what_propagation_brings_to_inputs(module: pyshardy.Module, pricer: Pricer) -> None:
    (family,) = (one for one in families(module, {"x": 4, "y": 2}) if len(one.weights) == LAYERS)
    sharding = parse_sharding('<@mesh, [{}, {"y"}]>')
    found = pricer.input_shardings(module, OtherInputs([(one, sharding) for one in family.weights]))
    assert 3 <= len([one for one in family.weights if one.index in found]) < LAYERS
    assert {found[one.index] for one in family.weights if one.index in found} == {sharding}
