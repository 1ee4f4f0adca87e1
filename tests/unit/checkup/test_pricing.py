"""Cures are priced on a program with a few of its layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import closing

import pytest

import pyshardy
from pyshardy.checkup import pricing
from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.state import state_cures
from pyshardy.checkup.pricing import Pricer
from pyshardy.checkup.pricing_workers import PricingWorkers
from pyshardy.checkup.program.annotating import OtherInputs
from pyshardy.checkup.program.families import families
from pyshardy.core.notation import parse_sharding
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import make_topology
from pyshardy.ir.shardings import module_meshes
from pyshardy.report.diagnosis import Figures

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
        price = pricer.price(module, cure.apply)
        assert price is not None and price == pricer.price(module, whole.apply)
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


@pytest.fixture
def cures(module: pyshardy.Module) -> list[Cure]:
    mesh = next(one for one in module_meshes(module.root).values() if one.axes)
    found = list(state_cures(module, "mesh", mesh))
    unsent = dataclasses.replace(found[0], apply=lambda module: found[0].apply(module), text="what cannot be sent")
    return [*found, unsent]


@pytest.fixture
def helped(module: pyshardy.Module, pricer: Pricer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pricer]:
    """A pricer that two processes help."""
    monkeypatch.setattr(pricing, "_LEAST_SECONDS", 0.0)
    setting = pricer.topology, pricer.model
    pricer._workers = PricingWorkers(setting, count=2)
    with closing(pricer):
        yield pricer


def test_other_processes_find_the_same_prices(
    module: pyshardy.Module, helped: Pricer, cures: list[Cure], monkeypatch: pytest.MonkeyPatch
) -> None:
    here: list[Figures | None] = [Pricer(helped.topology, helped.model).price(module, cure.apply) for cure in cures]
    assert len({*here} - {None}) > 1
    own: list[object] = []
    price = Pricer.price
    monkeypatch.setattr(Pricer, "price", lambda *given: own.append(given[2]) or price(*given))  # type: ignore[func-returns-value]
    for _ in range(2):
        own.clear()
        assert list(helped.prices(module, iter(cures))) == list(zip(cures, here))
        assert cures[-1].apply in own and len(own) < len(cures)  # some were priced elsewhere
    assert helped.tries == 2 * len(cures)


def test_what_a_process_that_ends_should_price_is_priced_here(
    module: pyshardy.Module, helped: Pricer, cures: list[Cure]
) -> None:
    here = [price for _, price in helped.prices(module, iter(cures))]
    for worker in helped._workers._workers:
        worker.child.kill()
        worker._listener.join()
    assert [price for _, price in helped.prices(module, iter(cures))] == here
    assert not helped._workers._workers and helped._workers._count == 0


def test_a_small_program_is_priced_here(module: pyshardy.Module, pricer: Pricer, cures: list[Cure]) -> None:
    pricer.price(module)
    assert len(list(pricer.prices(module, iter(cures)))) == len(cures)
    assert not pricer._workers._workers
