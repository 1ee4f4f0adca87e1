"""`jax.debug.inspect_array_sharding` is answered as JAX answers it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy

MESH = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))
X, W = np.ones((8, 16), np.float32), np.ones((16, 16), np.float32)
SPECS = P("data"), P(None, "model")
AXES = "data", "model"
Seen = list[Any]


def inspect(x: Any, seen: Seen, name: str) -> None:
    jax.debug.inspect_array_sharding(x, callback=lambda sharding: seen.append((name, sharding)))


def plain(x: Any, w: Any, seen: Seen) -> Any:
    y = jnp.tanh(x @ w)
    inspect(y, seen, "hidden")
    inspect(y.sum(0), seen, "sum")
    inspect(w, seen, "weight")
    return y + 1


def nested(x: Any, w: Any, seen: Seen) -> Any:
    @jax.jit
    def layer(x: Any) -> Any:
        inspect(x, seen, "in layer")
        return jnp.sin(x)

    y = layer(x @ w)
    inspect(y, seen, "between")
    return layer(y)


def loop(x: Any, w: Any, seen: Seen) -> Any:
    def body(x: Any, _: Any) -> Any:
        x = jnp.tanh(x @ w)
        inspect(x, seen, "in loop")
        return x, None

    return jax.lax.scan(body, x, None, length=3)[0]


def gradient(x: Any, w: Any, seen: Seen) -> Any:
    def loss(w: Any) -> Any:
        y = jnp.tanh(x @ w)
        inspect(y, seen, "forward")
        return (y**2).sum()

    return jax.grad(loss)(w)


def manual(x: Any, w: Any, seen: Seen) -> Any:
    def body(x: Any) -> Any:
        inspect(x, seen, "in shard_map")
        return x * 2

    return jax.shard_map(body, mesh=MESH, in_specs=P("data", "model"), out_specs=P("data", "model"))(x @ w)


def answers(function: Callable[..., Any], run: Callable[[Callable[..., Any]], Any]) -> Seen:
    seen: Seen = []
    run(lambda x, w: function(x, w, seen))
    return seen


def by_jax(function: Callable[..., Any]) -> Any:
    return jax.jit(function, in_shardings=tuple(NamedSharding(MESH, spec) for spec in SPECS))(X, W)


def by_jit(function: Callable[..., Any]) -> Any:
    return pyshardy.jit(function, mesh=MESH, in_shardings=SPECS)(X, W)


def by_partition(function: Callable[..., Any]) -> Any:
    module = pyshardy.load(function, X, W, mesh=MESH, in_shardings=SPECS)
    result = pyshardy.partition(pyshardy.propagate(module))
    assert not result.warnings
    result.hints()
    return result.run(X, W), result.run(X, W, engine="xla")


def by_xla(function: Callable[..., Any]) -> Any:
    return pyshardy.propagate(pyshardy.load(function, X, W, mesh=MESH, in_shardings=SPECS)).run(X, W)


@pytest.mark.slow_but_for("plain-by_xla")
@pytest.mark.parametrize("run", [by_jit, by_partition, by_xla])
@pytest.mark.parametrize("function", [plain, nested, loop, gradient, manual])
def test_callbacks_get_what_jax_gives(function: Callable[..., Any], run: Callable[..., Any]) -> None:
    expected = {(name, sharding) for name, sharding in answers(function, by_jax)}
    found = answers(function, run)
    assert expected and set(found) == expected
    assert all(isinstance(sharding, NamedSharding) for _, sharding in found)
    if function is not nested:  # the body of a function that is called twice is there twice
        assert len(found) == len(expected)


def test_a_wrong_answer_would_be_found() -> None:
    expected = set(answers(plain, by_jax))
    seen: Seen = []
    jitted = pyshardy.jit(lambda x, w: plain(x, w, seen), mesh=MESH, in_shardings=(P(), P("data")))
    jitted(X, W)
    assert set(seen) != expected


def test_once_per_program() -> None:
    seen: Seen = []
    jitted = pyshardy.jit(lambda x, w: plain(x, w, seen), mesh=MESH, in_shardings=SPECS)
    jitted(X, W)
    jitted(X + 1, W)
    assert len(seen) == 3
    jitted.propagate(X, W)
    assert len(seen) == 3


def test_without_devices_and_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    seen: Seen = []

    def function(x: Any) -> Any:
        inspect(x + 1, seen, "x")
        jax.debug.visualize_array_sharding(x + 1, use_color=False)
        return x

    x = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    pyshardy.partition(pyshardy.load(function, x, mesh={"data": 32, "model": 16}, in_shardings=P(*AXES)))
    ((_, sharding),) = seen
    assert sharding.spec == P(*AXES) and dict(sharding.mesh.shape) == {"data": 32, "model": 16}
    drawn = capsys.readouterr().out
    assert drawn.count("─") and all(f"{number} " in drawn for number in (0, 255, 511))


def test_sub_axes_come_as_jax_reads_them() -> None:
    seen: Seen = []

    def function(x: Any) -> Any:
        inspect(pyshardy.constrain(x, pyshardy.PartitionSpec("x:(1)2"), {"x": 8}), seen, "half")
        return x.sum()

    mesh = Mesh(np.array(jax.devices()[:8]), ("x",))
    shape = jax.ShapeDtypeStruct((16,), jnp.float32)
    with jax.set_mesh(mesh):
        jax.jit(function).lower(shape).compile()
    pyshardy.partition(pyshardy.load(function, shape, mesh=mesh))
    assert len(seen) == 2 and seen[0] == seen[1]
    assert "devices=[2,4]<=[8]" in str(seen[0][1])


@pytest.mark.slow
def test_a_program_of_another_process_is_only_warned_about(tmp_path: Path) -> None:
    """The address in it means nothing there, and whoever calls it dies."""
    file = tmp_path / "inspecting.mlir"
    module = pyshardy.load(lambda x, w: plain(x, w, []), X, W, mesh=MESH, in_shardings=SPECS)
    file.write_text(module.text())
    code = f"""
import numpy as np, pyshardy
result = pyshardy.propagate({str(file)!r})
arrays = [np.ones(port.shape, np.float32) for port in result.inputs]
for engine in ("xla", "local"):
    print(result.run(*arrays, engine=engine)[0][0, 0])
print(pyshardy.partition(result).warnings[0])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    *numbers, warning = found.stdout.splitlines()
    assert [float(number) for number in numbers] == pytest.approx([2, 2])  # processors round tanh differently
    assert "InspectSharding" in warning
