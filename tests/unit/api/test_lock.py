"""`lock`, `check` and `write_lock`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from pyshardy.api.lock import known_lock
from pyshardy.errors import UsageError
from tests.unit.compilers.programs import REPLICATED

PROGRAM = """
sdy.mesh @mesh = <["data"=4, "model"=2], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>}, %n: tensor<i32>)
    -> tensor<8xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = sdy.sharding_constraint %x <@mesh, [{"data"}, {"model", ?}]> : tensor<8x16xf32>
  %2:2 = stablehlo.while(%i = %n, %y = %1) : tensor<i32>, tensor<8x16xf32>
   cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
   } do {
    %3 = stablehlo.reduce(%y init: %0) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
    stablehlo.return %i, %4 : tensor<i32>, tensor<8x16xf32>
   }
  %5 = stablehlo.reduce(%2#1 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  return %5 : tensor<8xf32>
}"""


def test_what_a_lock_holds() -> None:
    found = pyshardy.lock(PROGRAM)
    assert (found.program, found.pyshardy, found.compiler) == ("function @main", pyshardy.__version__, "none")
    assert found.meshes[0].device_order == "0, 2, 4, 6, 1, 3, 5, 7"
    assert [(row.tensor, row.sharding) for row in found.constraints] == [
        ("f32[8, 16]", '[{"data"}, {"model", ?}]')
    ] or [(row.tensor, row.sharding) for row in found.constraints] == [("f32[8, 16]", "P('data', 'model')")]
    assert {row.per_round for row in found.collectives} == {True, False}
    assert found.sent_bytes == sum(row.bytes for row in found.collectives)
    part = pyshardy.partition(PROGRAM)
    assert pyshardy.lock(part) == pyshardy.lock(pyshardy.propagate(PROGRAM)) == found
    assert found.peak_bytes == pyshardy.cost(part).peak_bytes == sum(row.bytes for row in found.memory)


def test_the_same_program_gives_the_same_text() -> None:
    first = pyshardy.lock(PROGRAM).text()
    pyshardy.clear_caches()
    assert pyshardy.lock(PROGRAM).text() == first


def test_another_order_of_devices_is_another_mesh() -> None:
    other = PROGRAM.replace("device_ids=[0, 2, 4, 6, 1, 3, 5, 7]", "device_ids=[0, 2, 4, 6, 1, 3, 7, 5]")
    (change,) = pyshardy.check(other, pyshardy.lock(PROGRAM)).changes
    assert (change.kind, change.after) == ("mesh", ("data=4, model=2, device order 0, 2, 4, 6, 1, 3, 7, 5",))


def test_a_check_is_true_or_has_a_diff(tmp_path: Path) -> None:
    pyshardy.write_lock(PROGRAM, tmp_path / "a.lock")
    found = pyshardy.check(PROGRAM, tmp_path / "a.lock", name="step")
    assert found and str(found) == f"step is sharded as {tmp_path / 'a.lock'} says\n"
    assert repr(found) == f"<LockDifference: {found.verdict}>"
    other = pyshardy.check(PROGRAM.replace("8x16x", "8x32x"), tmp_path / "a.lock")
    assert not other and "-   f32[8, 16] P('data', 'model') (annotated)\n" in str(other)
    assert "<pre" in other._repr_html_()


@pytest.mark.slow
def test_replications_are_locked() -> None:
    found = pyshardy.lock(REPLICATED, compiler="cpu", budgets=pyshardy.Budgets(no_replication=True))
    (row,) = found.replications
    assert row.bytes > 0 and row.count == 1
    checked = pyshardy.check(REPLICATED, found)
    assert not checked and not checked.differs
    assert checked.broken[0].startswith("no replication is allowed: ")


@pytest.mark.slow
def test_a_new_replication() -> None:
    lock = pyshardy.lock(REPLICATED, compiler="cpu")
    (change,) = pyshardy.check(REPLICATED, replace(lock, replications=())).changes
    assert (change.kind, change.verb, change.places) == ("replication", "added", ("model.py:3",))
    assert change.after == ("P('y', None, 'x') to P(None, ('x', 'y')), 1.0 MiB",)
    assert "pyshardy explain --collectives" in change.why[0]
    assert "as compiled by XLA for CPUs (jaxlib" in " ".join(pyshardy.check(REPLICATED, lock, compiler="none").notes)


def test_files_that_are_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    assert known_lock(path) is None
    path.touch()
    assert known_lock(path) is None
    found = pyshardy.write_lock(PROGRAM, path, budgets=pyshardy.Budgets("1GiB"), hardware="h100")
    assert known_lock(path) == found
    assert pyshardy.write_lock(PROGRAM, path) == found


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: pyshardy.check(PROGRAM, 3), "checking a program: got an int as the lock, needed a lock, or a path"),  # type: ignore[arg-type]
        (
            lambda: pyshardy.lock(PROGRAM, budgets={}),
            "locking a program: got a dict as budgets, needed pyshardy.Budgets",
        ),  # type: ignore[arg-type]
        (lambda: pyshardy.lock(PROGRAM, comp="cpu"), "got the option 'comp'"),  # type: ignore[call-arg]
        (lambda: pyshardy.lock(PROGRAM, hardware="h1000"), "h1000"),
    ],
)
def test_what_is_refused(call: Any, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert said in str(raised.value)


def test_a_constraint_in_a_helper_has_the_line_of_its_call() -> None:
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    def put(x: jax.Array, spec: P) -> jax.Array:
        return jax.lax.with_sharding_constraint(x, spec)

    def module(spec: P) -> pyshardy.Module:
        def step(x: jax.Array) -> jax.Array:
            return put(jnp.tanh(x), spec) * 2

        return pyshardy.load(step, jax.ShapeDtypeStruct((8, 4), "float32"), mesh={"data": 2, "model": 2})

    found = pyshardy.check(module(P("model")), pyshardy.lock(module(P("data"))))
    (change,) = [one for one in found.changes if one.kind == "constraint"]
    (place,) = change.places
    line = Path(__file__).read_text().splitlines()[int(place.rpartition(":")[2]) - 1]
    assert line.strip() == "return put(jnp.tanh(x), spec) * 2"
