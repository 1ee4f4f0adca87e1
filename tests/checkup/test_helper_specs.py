"""Patches of functions that choose the spec of each array of a tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from search.patching import apply_patch

from pyshardy.checkup.helper_specs import helper_patch
from pyshardy.frontend.interface import InterfaceTensor

PATH = """\
import jax
from jax.sharding import PartitionSpec as P


def choose(path, x):
    \"""The spec.\"""
    return P("x") if "norm" in str(path) else P()


specs = jax.tree_util.tree_map_with_path(lambda path, x: choose(path, x), params)
"""
SHAPE = """\
import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def on_mesh(x):
    if x.ndim < 2:
        return NamedSharding(mesh, P())
    return NamedSharding(mesh, P("x"))


shardings = jax.tree.map(on_mesh, params)
"""


def tensors(*given: tuple[str, tuple[int, ...]]) -> list[InterfaceTensor]:
    return [InterfaceTensor(name, index, shape, "f32", None) for index, (name, shape) in enumerate(given)]


def patched(source: str, inputs: list[InterfaceTensor], changed: dict[int, tuple[tuple[str, ...], ...]]) -> str:
    Path("chosen.py").write_text(source)
    patch = helper_patch(["chosen.py"], inputs, changed)
    return "".join(apply_patch(source.splitlines(keepends=True), patch)) if patch else ""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_end_of_a_path_tells_weights_from_others() -> None:
    inputs = tensors(
        ("params.layers[0].up", (8, 8)), ("params.layers[1].up", (8, 8)), ("params.layers[0].down", (8, 8))
    )
    text = patched(PATH, inputs, {0: ((), ("x",)), 1: ((), ("x",))})
    assert (
        """    \"""The spec.\"""
    if jax.tree_util.keystr(path).endswith('.up'):
        return P(None, 'x')
    return P("""
        in text
    )


def test_a_shape_tells_weights_from_others() -> None:
    inputs = tensors(("params['up']", (8, 16)), ("params['norm']", (8,)))
    text = patched(SHAPE, inputs, {0: ((), ("x",))})
    assert "    if x.shape == (8, 16):\n        return NamedSharding(mesh, P(None, 'x'))\n    if x.ndim" in text


def test_there_is_no_patch_where_nothing_tells_them_apart() -> None:
    inputs = tensors(("params['up']", (8, 16)), ("params['down']", (8, 16)))
    assert patched(SHAPE, inputs, {0: ((), ("x",))}) == ""
    assert patched(PATH, tensors(("a[0].up", (8,)), ("b.up", (8,))), {0: (("x",),)}) == ""
    assert patched(SHAPE.replace("jax.tree.map(on_mesh, params)", "on_mesh(params)"), inputs, {0: ((), ("x",))}) == ""
