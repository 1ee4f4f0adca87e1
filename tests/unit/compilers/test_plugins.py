"""Compilers that are installed, missing, or of another version."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyshardy.compilers import plugins
from pyshardy.errors import UnsupportedVersionError, UsageError


def test_xla_for_cpus_is_always_there() -> None:
    found = plugins.find_plugin("cpu")
    assert found.label.startswith("XLA for CPUs (jaxlib 0.")
    assert plugins.is_installed("cpu")


@pytest.mark.parametrize("platform, extra", [("tpu", "tpu"), ("cuda", "cuda")])
def test_a_missing_compiler_is_named(platform: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=f"try: pip install 'pyshardy\\[{extra}\\]'"):
        plugins.find_plugin(platform)
    assert not plugins.is_installed(platform)


def _installed(monkeypatch: pytest.MonkeyPatch, folder: Path, versions: dict[str, str]) -> None:
    (folder / "xla_cuda13").mkdir()
    (folder / "xla_cuda13" / "xla_cuda_plugin.so").touch()
    spec: Any = SimpleNamespace(submodule_search_locations=[str(folder)])
    monkeypatch.setattr(plugins, "find_spec", lambda name: spec)
    monkeypatch.setattr(plugins, "version", versions.__getitem__)


def test_the_cuda_plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _installed(monkeypatch, tmp_path, {"jaxlib": "0.12.0.1", "jax-cuda13-pjrt": "0.12.0.2"})
    found = plugins.find_plugin("cuda")
    assert found.label == "XLA for GPUs (jax-cuda13-pjrt 0.12.0.2)"
    assert found.library == str(tmp_path / "xla_cuda13" / "xla_cuda_plugin.so")


def test_a_plugin_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _installed(monkeypatch, tmp_path, {"jaxlib": "0.12.0", "jax-cuda13-pjrt": "0.10.2"})
    with pytest.raises(UnsupportedVersionError) as raised:
        plugins.find_plugin("cuda")
    assert str(raised.value) == (
        "asking a compiler: got jax-cuda13-pjrt 0.10.2 beside jaxlib 0.12.0, needed both of one version\n"
        "  try: pip install --no-deps jax-cuda13-pjrt==0.12.0"
    )
