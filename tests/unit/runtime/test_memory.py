"""How much memory programs take, as far as one can say, how much there is, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.runtime import memory
from pyshardy.runtime.memory import available_bytes, check_memory, peak_bytes_of_program, placed_bytes

K = 1024
X = jax.ShapeDtypeStruct((K // 4,), "float32")
"""One KiB."""


def peak(fn: Any, *args: Any) -> int:
    return peak_bytes_of_program(pyshardy.load(fn, *args).root)


def smooth(x: Any, width: int = 3) -> Any:
    """An op that is not fused."""
    sizes = (width,) if x.ndim == 1 else (1, width)
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, sizes, (1,) * x.ndim, "SAME")


@pytest.mark.parametrize(
    ("fn", "count", "expected"),
    [
        (lambda x: x, 1, 2),
        (lambda x, y: smooth(x) + y, 2, 3),
        (lambda x: smooth(x), 1, 2),
        (lambda x: smooth(smooth(x)), 1, 3),
        (lambda x: smooth(smooth(smooth(smooth(x)))), 1, 4),
        (lambda x: (smooth(x), smooth(x, 5), smooth(x, 7)), 1, 4),
        (lambda x: jnp.concatenate([smooth(x), smooth(x, 5)]), 1, 5),
        (lambda x: jnp.tanh(jnp.sin(jnp.cos(x) + 1)), 1, 2),
        (lambda x: smooth(x).reshape(16, 16), 1, 2),
        (lambda x: smooth(smooth(smooth(x).reshape(16, 16))), 1, 3),
        (lambda x: x + jnp.ones(K // 4), 1, 2),
        (lambda x: jax.jit(lambda x: smooth(smooth(x)))(x), 1, 3),
        (lambda x: jax.lax.fori_loop(0, 9, lambda _, x: smooth(smooth(x)), x), 1, 3),
        (lambda x: jax.lax.cond(True, lambda x: smooth(smooth(smooth(x))), jnp.sin, x), 1, 3),
    ],
)
def test_the_peak_is_what_is_still_needed(fn: Any, count: int, expected: int) -> None:
    assert expected * K <= peak(fn, *[X] * count) <= expected * K + 64  # and some counters


def test_a_value_used_late_is_held_until_then() -> None:
    def early(x: Any) -> Any:
        return smooth(smooth(smooth(smooth(x)) + smooth(x, 5)))

    def late(x: Any) -> Any:
        first = smooth(x, 5)
        return smooth(smooth(smooth(smooth(x)))), first

    assert peak(late, X) == peak(lambda x: smooth(smooth(smooth(smooth(x)))), X) + K
    assert peak(early, X) == 4 * K


def test_a_value_that_a_region_uses_from_around_it_is_held() -> None:
    text = """
    func.func @main(%x: tensor<256xf32>, %go: tensor<i1>) -> tensor<256xf32> {
      %a = stablehlo.tanh %x : tensor<256xf32>
      %b = stablehlo.reverse %x, dims = [0] : tensor<256xf32>
      %c = stablehlo.reverse %b, dims = [0] : tensor<256xf32>
      %r = "stablehlo.if"(%go) ({
        stablehlo.return %c : tensor<256xf32>
      }, {
        %d = stablehlo.reverse %USED, dims = [0] : tensor<256xf32>
        stablehlo.return %d : tensor<256xf32>
      }) : (tensor<i1>) -> tensor<256xf32>
      return %r : tensor<256xf32>
    }"""
    captured, not_captured = (
        peak_bytes_of_program(pyshardy.load(text.replace("%USED", name)).root) for name in ("%a", "%x")
    )
    assert captured == not_captured + K


def test_tables_count_and_splats_do_not() -> None:
    assert peak(lambda x: x + jnp.asarray(np.arange(K / 4, dtype=np.float32)), X) == 3 * K
    assert peak(lambda x: x + 7, X) == 2 * K


def test_a_function_that_calls_itself_ends() -> None:
    text = """
    func.func @main(%x: tensor<256xf32>) -> tensor<256xf32> {
      %0 = call @again(%x) : (tensor<256xf32>) -> tensor<256xf32>
      return %0 : tensor<256xf32>
    }
    func.func private @again(%x: tensor<256xf32>) -> tensor<256xf32> {
      %0 = call @again(%x) : (tensor<256xf32>) -> tensor<256xf32>
      return %0 : tensor<256xf32>
    }"""
    assert peak_bytes_of_program(pyshardy.load(text).root) >= 2 * K


def test_what_jax_says_of_a_real_program_is_near() -> None:
    def step(w: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            for layer in w:
                x_ = jnp.tanh(x @ layer)
            return jnp.sum(x_ @ w[0])

        return jax.tree.map(lambda w, g: w - g, w, jax.grad(loss)(w))

    args = [jax.ShapeDtypeStruct((512, 512), "float32")] * 4, jax.ShapeDtypeStruct((4096, 512), "float32")
    found = jax.jit(step).lower(*args).compile().memory_analysis()
    real = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    assert 0.5 < peak(step, *args) / real < 2


# How much there is


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, str]], int | None]:
    """The memory that is free on a machine with these files."""

    def install(files: dict[str, str]) -> int | None:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        monkeypatch.setattr(memory, "_MEMORY_INFO", tmp_path / "meminfo")
        monkeypatch.setattr(memory, "_CGROUP", tmp_path / "cgroup")
        monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "groups")
        return available_bytes()

    return install


INFO = {"meminfo": "MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable:   50 kB\n"}
OLD = {"groups/memory/a/b/memory.limit_in_bytes": "30000\n", "groups/memory/a/b/memory.usage_in_bytes": "20000\n",
       "groups/memory/a/b/memory.stat": "cache 5\ntotal_inactive_file 4000\n"}  # fmt: skip
NEW = {"groups/a/memory.max": "40000\n", "groups/a/memory.current": "20000\n",
       "groups/a/memory.stat": "anon 5\ninactive_file 1000\n"}  # fmt: skip


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (INFO, 51200),
        (INFO | OLD | {"cgroup": "5:cpu:/x\n4:memory:/a/b\n0::/\n"}, 14000),
        (INFO | OLD | {"cgroup": "4:cpu,memory:/a/b/c\n"}, 14000),
        (INFO | OLD | {"cgroup": "4:memory:/a\n"}, 51200),
        (INFO | NEW | {"cgroup": "0::/a/b\n"}, 21000),
        (INFO | NEW | {"cgroup": "0::/a\n", "groups/a/memory.max": "max\n"}, 51200),
        (INFO | NEW | {"cgroup": "0::/a\n", "groups/a/memory.max": "10\n"}, 0),
    ],
)
def test_the_least_limit_counts(files: dict[str, str], expected: int, machine: Any) -> None:
    assert machine(files) == expected


def test_without_files_the_system_says(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", {"SC_AVPHYS_PAGES": 7, "SC_PAGE_SIZE": 100}.__getitem__)
    assert machine({}) == 700

    def unknown(_: str) -> int:
        raise ValueError

    monkeypatch.setattr("os.sysconf", unknown)
    assert machine({}) is None
    check_memory("running", 10**18)


def test_this_machine_has_some() -> None:
    assert (available_bytes() or 0) > 10**6


# What is refused


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a megabyte."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**20)


PROGRAM = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<8x65536xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x65536xf32> {
  %0 = stablehlo.tanh %a : tensor<8x65536xf32>
  return %0 : tensor<8x65536xf32>
}"""
MESSAGE = (
    "running a program on 8 devices: got a program that takes about 4.0 MiB of memory, needed one that fits in the 1.0 MiB "
    r"that are free on this machine\n  try: a smaller program, or --force \(force=True in Python\) to run it all the same"
)
ARRAY = np.ones((8, 65536), np.float32)


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("engine", ["local", "xla", "interpreter"])
def test_what_does_not_fit_is_refused(engine: str) -> None:
    partition = pyshardy.partition(pyshardy.load(PROGRAM))
    assert 8 * partition.bytes_per_device == 4 * 2**20
    with pytest.raises(UsageError, match=MESSAGE):
        pyshardy.run(partition, ARRAY, engine=engine)


@pytest.mark.usefixtures("little")
def test_whoever_wants_it_gets_it() -> None:
    partition = pyshardy.partition(pyshardy.load(PROGRAM))
    np.testing.assert_allclose(pyshardy.run(partition, ARRAY, force=True)[0], np.tanh(ARRAY), rtol=1e-5)
    with pytest.raises(UsageError, match=MESSAGE):
        pyshardy.propagate(pyshardy.load(PROGRAM)).run(ARRAY)
    assert pyshardy.propagate(pyshardy.load(PROGRAM)).run(ARRAY, force=True)[0].shape == ARRAY.shape


def test_a_program_that_has_been_found_to_fit_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = pyshardy.partition(pyshardy.load(PROGRAM))
    pyshardy.run(partition, ARRAY)
    monkeypatch.setattr(memory, "available_bytes", lambda: 0)
    pyshardy.run(partition, ARRAY)


def test_inputs_that_are_placed_already_are_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("x",))
    placed = jax.device_put(ARRAY, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x")))
    assert placed_bytes([placed, ARRAY, jnp.ones(4)]) == ARRAY.nbytes
    monkeypatch.setattr(memory, "available_bytes", lambda: 3 * 2**20)
    with pytest.raises(UsageError, match="takes about 4.0 MiB of memory"):
        pyshardy.run(pyshardy.partition(pyshardy.load(PROGRAM)), ARRAY)
    pyshardy.run(pyshardy.partition(pyshardy.load(PROGRAM)), placed)
