"""Kernels are called in `jax.shard_map` where a line calls the function around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshardy.checkup.patching.kernel_patch import kernel_call

MESH = {"data": 4, "model": 2}
ROWS = (("data",),)
KERNEL = "def scan(u, a):\n    return call(u.shape)(u, a)\n"


def added(diff: str) -> list[str]:
    return [line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "net.py"


def patch(file: Path, text: str, *lines: int) -> list[str]:
    file.write_text(text)
    call = kernel_call([(str(file), line, 0) for line in lines], 2)
    return [] if call is None else added(call.patch([ROWS, ()], [ROWS], MESH))


def test_the_call_of_the_function_is_made_one_of_shard_map(file: Path) -> None:
    text = f"from jax.sharding import PartitionSpec as P\n{KERNEL}def f(x, w, mesh):\n    y = net.scan(x + 1, w) * 2\n"
    assert patch(file, text, 3, 5) == [
        "    y = jax.shard_map(net.scan, mesh=mesh, in_specs=(P('data'), P()), out_specs=P('data'), check_vma=False)"
        "(x + 1, w) * 2"
    ]


def test_the_outermost_call_counts(file: Path) -> None:
    """A rule for the gradient calls the function, too."""
    text = f"from jax.sharding import PartitionSpec as P\n{KERNEL}def forward(u, a):\n    return scan(u, a), a\nscan(x, w)\n"
    (line,) = patch(file, text, 3, 5, 6)
    assert line.startswith("jax.shard_map(scan, ") and line.endswith("(x, w)")


def test_a_function_may_hand_its_arguments_through_another(file: Path) -> None:
    inner = "def call(name, shape, *given):\n    return jax.ffi.ffi_call(name, shape)(*given)\n"
    text = f"from jax.sharding import PartitionSpec as P\n{inner}def scan(u, a):\n    return call('ssm', u.shape, u, a)\nscan(x, w)\n"
    (line,) = patch(file, text, 3, 5, 6)
    assert line.startswith("jax.shard_map(scan, ") and line.endswith("(x, w)")


@pytest.mark.parametrize(
    "kernel, call",
    [
        ("def scan(u, a):\n    return call(u.shape)(a, u)\n", "y = scan(x, w)\n"),
        ("def scan(u, a, b):\n    return call(u.shape)(u, a)\n", "y = scan(x, w, w)\n"),
        ("def scan(u, a):\n    return call(u.shape)(u, -a)\n", "y = scan(x, w)\n"),
        (KERNEL, "y = scan(x, a=w)\n"),
        (KERNEL, "y = scan(x, w) + scan(x, w)\n"),
        (KERNEL, "y = other(x, w)\n"),
    ],
)
def test_what_is_not_sure_is_left_alone(file: Path, kernel: str, call: str) -> None:
    assert patch(file, f"{kernel}{call}", 2, 3) == []
