"""The programs of the test suite, and random ones, beside the compilers for TPUs and GPUs: 100 % where they are asked.

They run where the compilers are installed (`pip install 'pyshardy[tpu,cuda]'`), which `.ci/run` does on Python 3.13.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from jaxlib import xla_client

import pyshardy
from programs import PROGRAMS
from pyshardy.compilers.plugins import is_installed
from pyshardy.compilers.target import find_target
from pyshardy.costing.traffic import KindTotal, Traffic
from pyshardy.errors import UsageError
from pyshardy.ir.hlo_proto import hlo_module_proto
from pyshardy.results.compiled import check_with_compiler
from pyshardy.runtime.hlo import hlo_kinds
from support.programs import module_text
from tests.end_to_end.number_programs import FAMILIES
from tests.unit.compilers.programs import REPLICATED, SUMMED

COMPILERS = ("tpu:v5e", "cuda:h100", "tpu:v6e", "tpu:v5p")
RANDOM = 2
"""The random programs of every family."""


def _needs(compiler: str) -> None:
    platform = compiler.partition(":")[0]
    if not is_installed(platform):
        pytest.skip(f"the compiler for {platform} is not installed beside this Python")


def _check(text: str, compiler: str) -> None:
    """Compare inputs, outputs and values with those that the compiler decided, and collectives with its text."""
    found = pyshardy.partition(text, compiler=compiler)
    assert found.answer is not None
    compared = check_with_compiler(found.propagated.module, found.answer)
    assert compared.differences == ()
    assert not [warning for warning in found.propagated.warnings if "a fault of pyshardy" in warning]
    assert once(found.traffic) == in_text(found.answer.partitioned)


def once(traffic: Traffic) -> Counter[str]:
    """The bytes that collectives send by kind, one round of each loop, as the text does not say how many there are."""
    found: Counter[str] = Counter()
    for row in traffic.collectives:
        times = 1 if row.is_in_loop else row.times  # a function may be called several times
        found[row.kind] += row.sent_bytes_per_device * times * row.is_counted
    return found


def in_text(partitioned: bytes | None) -> Counter[str]:
    """The same in the compiler's own text, by an independent reader."""
    assert partitioned is not None
    content = hlo_module_proto(partitioned)
    text = xla_client.hlo.HloModule.from_serialized_hlo_module_proto(content).to_string()
    return bytes_of(hlo_kinds(text.replace(" direction=", " unread=")))  # so that no counter of a loop is read


def bytes_of(kinds: Sequence[KindTotal]) -> Counter[str]:
    return Counter({total.kind: total.sent_bytes_per_device for total in kinds})


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_is_as_compiled(name: str, compiler: str) -> None:
    program = PROGRAMS[name]
    if program.in_process:
        pytest.skip("its module holds addresses of the process that lowered it")
    if (reason := program.skip()) is not None:
        pytest.skip(reason)
    _needs(compiler)
    _check(module_text(program), compiler)


@pytest.mark.parametrize("compiler", COMPILERS[:2])
@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs_are_as_compiled(family: str, compiler: str) -> None:
    _needs(compiler)
    compared = 0
    for seed in range(RANDOM):
        text = FAMILIES[family](seed)
        if "sdy.named_computation" in text:  # JAX never passes it to XLA, which refuses it
            continue
        try:
            find_target(compiler, pyshardy.propagate(text).device_count)
        except UsageError:  # no slice of TPUs has so many devices
            continue
        _check(text, compiler)
        compared += 1
    assert compared or family == "called"


@pytest.mark.parametrize("compiler", COMPILERS[:2])
def test_every_replication_that_the_compiler_warns_of_is_reported_and_has_a_remedy(compiler: str) -> None:
    _needs(compiler)
    found = pyshardy.partition(REPLICATED, compiler=compiler)
    assert found.answer is not None
    assert found.answer.log.count("Involuntary full rematerialization") == len(found.replications) == 1
    (remedy,) = found.remedies()
    assert remedy.replicated_bytes[1] == 0


@pytest.mark.parametrize("compiler", COMPILERS[:2])
def test_a_program_compiled_to_the_end(compiler: str) -> None:
    _needs(compiler)
    found = pyshardy.confirm(SUMMED.replace('"x"=2', '"x"=4'), compiler)
    assert found.fits
    assert dict(found.memory)["output"] >= 16
    assert sum(total.count for total in found.collectives) == 1
    assert found.estimated_peak_bytes is not None


def test_a_collective_too_many_is_found() -> None:
    kinds = (KindTotal("all_gather", 1, 16), KindTotal("all_reduce", 2, 8))
    assert bytes_of(kinds) != bytes_of(kinds[:1])
    assert bytes_of(kinds) != bytes_of((kinds[0], KindTotal("all_reduce", 2, 9)))
