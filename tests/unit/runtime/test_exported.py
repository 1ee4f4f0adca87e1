"""Compiling modules with XLA through JAX."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

from pyshardy.errors import ShardyError
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.ir.module import Module
from pyshardy.runtime.exported import CompiledModule, _reason, _refusing

A = np.arange(8, dtype=np.float32).reshape(4, 2)


def executable(body: str, type: str = "tensor<4x2xf32>", **options: object) -> CompiledModule:
    module = Module.parse(f"func.func public @main(%a: {type}) -> {type} {{ {body} : {type}\nreturn %0 : {type} }}")
    return CompiledModule(module, input_tensors(module.root), output_tensors(module.root), **options)  # type: ignore[arg-type]


def test_the_body_is_the_module() -> None:
    (found,) = executable("%0 = stablehlo.negate %a")([A])
    np.testing.assert_array_equal(found, -A)


def test_its_text_is_what_xla_compiles() -> None:
    text = executable("%0 = stablehlo.negate %a").as_text()
    assert "ENTRY" in text
    assert "negate(" in text


def test_it_is_compiled_once() -> None:
    run = executable("%0 = stablehlo.negate %a")
    run([A])
    assert run._jitted._cache_size() == 1
    run([A + 1])
    assert run._jitted._cache_size() == 1


def test_shardings_place_the_outputs() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    module = Module.parse("""
    module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
      sdy.mesh @mesh = <["x"=2]>
      func.func public @main(%a: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x2xf32> {
        %0 = stablehlo.negate %a : tensor<4x2xf32>
        return %0 : tensor<4x2xf32>
      }
    }""")
    run = CompiledModule(module, input_tensors(module.root), output_tensors(module.root), ([rows], [rows]))
    (found,) = run([jax.device_put(A, rows)])
    assert found.sharding.is_equivalent_to(rows, 2)
    np.testing.assert_array_equal(found, -A)
    assert "num_partitions=2" in run.as_text()


def test_a_donated_input_is_used_up() -> None:
    run = executable("%0 = stablehlo.negate %a", donated=[0])
    given = jax.device_put(A, jax.devices()[0])
    (found,) = run([given])
    np.testing.assert_array_equal(found, -A)
    assert given.is_deleted()


@pytest.mark.parametrize("element", ["i64", "f64", "complex<f64>"])
def test_wide_types_are_there_while_the_program_runs(element: str) -> None:
    run = executable("%0 = stablehlo.add %a, %a", f"tensor<4x2x{element}>")
    assert run.wide
    with run.types():
        assert jax.config.read("jax_enable_x64")
    assert not jax.config.jax_enable_x64
    assert not executable("%0 = stablehlo.add %a, %a").wide


@pytest.mark.parametrize("compile_it", [lambda run: run([A]), lambda run: run.as_text()])
def test_what_xla_refuses_is_one_error(compile_it: Callable[[CompiledModule], object]) -> None:
    type = "tensor<4x2xf32>"
    run = executable(f'%0 = "stablehlo.custom_call"(%a) {{call_target_name = "missing"}} : ({type}) -> {type} //')
    with pytest.raises(ShardyError, match="got .*missing.*needed a program that XLA can compile here"):
        compile_it(run)


def test_the_reason_of_an_error() -> None:
    assert _reason(RuntimeError("INTERNAL: no\nmore of it")) == "INTERNAL: no"
    quoted = "INTERNAL: f: Traceback (most recent call last):\n  File x\n    y\nValueError: no idea\n\nAt:\n  z"
    assert _reason(RuntimeError(quoted)) == "INTERNAL: f: ValueError: no idea"
    assert _reason(RuntimeError("INTERNAL: Traceback (most recent call last):")) == "INTERNAL: an exception"


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("reason", ["UNKNOWN: Gloo all-reduce failed: Connection reset by peer", "INTERNAL: bad op"])
def test_a_dead_process_is_told_from_a_bad_program(
    reason: str, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax, "process_count", lambda: processes)

    def fail() -> None:
        raise jax.errors.JaxRuntimeError(reason)

    with pytest.raises(ShardyError) as caught:
        _refusing(fail)
    is_dead = processes > 1 and "Gloo" in reason
    needed = "all processes of the program to keep running" if is_dead else "a program that XLA can compile here"
    assert (caught.value.got, caught.value.needed) == (reason, needed)
    assert caught.value.hint == ("look at what the other processes printed" if is_dead else None)
