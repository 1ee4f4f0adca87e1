"""Programs that XLA for CPUs compiles to the end."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.compilers import ask as module_of_ask
from pyshardy.errors import ShardyError, UsageError
from support.tables import tables_in
from tests.unit.compilers.programs import REPLICATED, SUMMED


@pytest.mark.slow
def test_memory_and_collectives_of_the_compiled_program() -> None:
    found = pyshardy.confirm(SUMMED, "cpu")
    parts = dict(found.memory)
    assert (parts["argument"], parts["output"]) == (64, 16)
    assert found.peak_bytes == parts["argument"] + parts["output"] - parts["alias"] + parts["temp"]
    assert found.fits is None  # nobody knows the memory of a CPU device
    assert [(row.kind, row.count, row.sent_bytes_per_device) for row in found.collectives] == [("all_reduce", 1, 16)]
    lines = str(found).splitlines()
    assert lines[0].startswith("compiled by XLA for CPUs (jaxlib ")
    assert lines[1] == f"needs: {found.peak_bytes} B per device"


def test_collectives_stand_beside_those_of_the_partitioned_program() -> None:
    found = pyshardy.confirm(SUMMED, "cpu")
    (row,) = found.rows
    assert (row.kind, row.axes, row.compiled, row.holds) == ("all_reduce", "x", row.estimated, True)
    (data,) = found.to_json()["collectives_by_axes"]
    figures = {"count": 1, "sent_bytes_per_device": 16, "is_lower_bound": False}
    assert data == {"kind": "all_reduce", "axes": "x", "compiled": figures, "partitioned": figures, "holds": True}
    assert [one.estimated for one in found.memory_rows] == [None] * len(found.memory_rows)  # nobody has a chip for it
    assert tables_in(str(found))["collectives"] == [
        {"kind": "all_reduce", "along": "x", "compiled": "1", "sent": "16 B", "partitioned": "1", "change": "+0%"}
    ]


@pytest.mark.slow
def test_a_result_knows_its_compiler() -> None:
    found = pyshardy.confirm(pyshardy.propagate(REPLICATED, compiler="cpu"))
    assert len(found.replications) == 1
    assert found.to_json()["replications"][0]["line"] == 3
    assert found.to_json() == pyshardy.confirm(REPLICATED, "cpu").to_json()


def test_a_compiler_must_be_named() -> None:
    with pytest.raises(UsageError, match="compiling a program: got no compiler"):
        pyshardy.confirm(SUMMED)


def test_out_of_memory_is_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module_of_ask.run_job

    def run_job(job: module_of_ask.Job, *rest: object) -> module_of_ask.Answer:
        if job.to_the_end:
            raise ShardyError("asking", got="RESOURCE_EXHAUSTED: Ran out of memory in hbm. Used 30.50G of 15.75G hbm.")
        return real(job, *rest)  # type: ignore[arg-type]

    pyshardy.clear_caches()
    monkeypatch.setattr(module_of_ask, "run_job", run_job)
    found = pyshardy.confirm(SUMMED, "cpu")
    assert (found.fits, found.peak_bytes, found.collectives) == (False, int(30.5 * 2**30), ())
    assert str(found).splitlines()[1] == "does not fit: it needs 30.5 GiB"


def test_any_other_refusal_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module_of_ask.run_job

    def run_job(job: module_of_ask.Job, *rest: object) -> module_of_ask.Answer:
        if job.to_the_end:
            raise ShardyError("asking", got="UNIMPLEMENTED: no rule for it")
        return real(job, *rest)  # type: ignore[arg-type]

    pyshardy.clear_caches()
    monkeypatch.setattr(module_of_ask, "run_job", run_job)
    with pytest.raises(ShardyError, match="UNIMPLEMENTED"):
        pyshardy.confirm(SUMMED, "cpu")


def layers(count: int) -> str:
    """Layers of two products, whose sum is over the axis of the weights."""
    x, up, down = "tensor<64x32xf32>", "tensor<32x64xf32>", "tensor<64x32xf32>"
    columns, rows = (f"{{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}" for dims in ('{}, {"x"}', '{"x"}, {}'))
    weights = [f"%u{at}: {up} {columns}, %d{at}: {down} {rows}" for at in range(count)]
    body = [
        f"""%h{at} = stablehlo.dot_general %x{at}, %u{at}, contracting_dims = [1] x [0]
          : ({x}, {up}) -> tensor<64x64xf32>
        %t{at} = stablehlo.tanh %h{at} : tensor<64x64xf32>
        %x{at + 1} = stablehlo.dot_general %t{at}, %d{at}, contracting_dims = [1] x [0]
          : (tensor<64x64xf32>, {down}) -> {x}"""
        for at in range(count)
    ]
    lines = "\n".join(body)
    return (
        f'sdy.mesh @mesh = <["x"=4]>\nfunc.func @main(%x0: {x}, {", ".join(weights)}) -> {x} {{\n{lines}\n'
        f"return %x{count} : {x}\n}}"
    )


@pytest.mark.slow
def test_a_shortened_program_tells_of_the_whole() -> None:
    text = layers(16)
    whole, short = (pyshardy.confirm(text, "cpu", shortened=shortened) for shortened in (False, True))
    assert (whole.layers, short.layers, short.versions) == (0, 16, (2, 5, 7))
    assert short.collectives == whole.collectives and whole.collectives[0].count == 16
    assert [row.compiled for row in short.rows] == [row.compiled for row in whole.rows]
    assert dict(short.memory)["argument"] == dict(whole.memory)["argument"]
    assert short.peak_bytes == pytest.approx(whole.peak_bytes, rel=0.03)
    assert short.peak_range is not None and short.peak_range[0] <= (short.peak_bytes or 0) <= short.peak_range[1]
    assert whole.to_json()["shortened"] is None
    shown = " ".join(str(short).split())
    assert "not whole, but with 2, 5 and 7 of its 16 layers; the figures are what follows" in shown


def test_a_program_without_layers_is_not_shortened() -> None:
    with pytest.raises(UsageError, match="got no layers that repeat, needed at least 12 layers that are unrolled"):
        pyshardy.confirm(SUMMED, "cpu", shortened=True)
