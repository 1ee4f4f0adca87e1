"""Patches of functions that choose the spec of each array of a tree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from search.patching import apply_patch

from pyshardy.checkup.patching.helper_specs import helper_patch, like_weights_patch
from pyshardy.core.sharding import TensorSharding
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


SAME = """\
import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

whole = NamedSharding(mesh, P())
params = jax.tree.map(choose, params)
moments = jax.tree.map(lambda _: whole, moments)
"""
PUT = """\
import jax
from jax.sharding import NamedSharding, PartitionSpec as P


def put(path, x):
    return jax.device_put(x, NamedSharding(mesh, P()))


state = jax.tree_util.tree_map_with_path(put, state)
"""
WHOLE, ROWS = (TensorSharding("mesh", dims) for dims in ([[], []], [["x"], []]))


def test_arrays_of_a_tree_that_gets_one_spec_get_others() -> None:
    names = "params['up']", "moments['up']", "moments['down']", "moments['scale']"
    shapes = (8, 16), (8, 16), (16, 8), (8, 8)
    inputs = [
        InterfaceTensor(name, index, shape, "f32", WHOLE) for index, (name, shape) in enumerate(zip(names, shapes))
    ]
    text = patched(SAME, inputs, {1: ((), ("x",)), 2: (("x",),)})
    rows, columns = "NamedSharding(mesh, P('x'))", "NamedSharding(mesh, P(None, 'x'))"
    cases = f"{columns} if x.shape == (8, 16) else {rows} if x.shape == (16, 8) else whole"
    assert f"moments = jax.tree.map(lambda x: ({cases}), moments)" in text
    alike = [replace(one, shape=(8, 16)) for one in inputs]
    assert patched(SAME, alike, {1: ((), ("x",))}) == ""


def test_a_function_that_puts_all_arrays_on_a_mesh_alike_chooses_by_the_path() -> None:
    inputs = [
        InterfaceTensor(name, index, (8, 8), "f32", WHOLE)
        for index, name in enumerate(("state.m['a']", "state.m['b']"))
    ]
    text = patched(PUT, inputs, {1: ((), ("x",))})
    condition = "jax.tree_util.keystr(path).endswith(\".m['b']\")"
    whole, columns = (f"NamedSharding(mesh, {spec})" for spec in ("P()", "P(None, 'x')"))
    assert f"return jax.device_put(x, ({columns} if {condition} else {whole}))" in text


def test_inputs_that_have_other_axes_are_not_given_theirs_there() -> None:
    inputs = [InterfaceTensor("state.m['a']", 0, (8, 8), "f32", ROWS)]
    assert patched(PUT, inputs, {0: ((), ("x",))}) == ""


def test_a_tree_that_is_put_on_a_mesh_as_a_whole_is_put_array_by_array() -> None:
    source = SAME.replace("jax.tree.map(lambda _: whole, moments)", "jax.device_put(moments, whole)")
    given = ("params['up']", (8, 16)), ("moments['up']", (8, 16)), ("moments['scale']", (8,))
    inputs = [InterfaceTensor(name, index, shape, "f32", WHOLE) for index, (name, shape) in enumerate(given)]
    text = patched(source, inputs, {1: ((), ("x",))})
    case = "NamedSharding(mesh, P(None, 'x')) if x.shape == (8, 16) else whole"
    assert f"moments = jax.device_put(moments, jax.tree.map(lambda x: ({case}), moments))" in text


STATE = """\
def shardings(mesh, state):
    fsdp = lambda x: split(mesh, x)
    return state.replace(
        params=jax.tree.map(fsdp, state.params),
        opt_state=jax.tree.map(lambda x: whole(mesh, x), state.opt_state),
    )
"""


@pytest.mark.parametrize(
    ("source", "mended"),
    [
        (STATE, STATE.replace("lambda x: whole(mesh, x)", "fsdp")),
        (STATE.replace("opt_state", "slots"), ""),  # nothing is mapped over a tree of this name
        (STATE.replace("lambda x: whole(mesh, x)", "fsdp"), ""),  # the function is the same
    ],
)
def test_optimizer_state_gets_the_specs_of_its_weights(source: str, mended: str) -> None:
    state = tensors(("state.opt_state[0].mu['up']", (8, 8)), ("state.opt_state[0].nu['up']", (8, 8)))
    Path("chosen.py").write_text(source)
    patch = like_weights_patch(["chosen.py"], state, tensors(("state.params['up']", (8, 8))))
    assert ("".join(apply_patch(source.splitlines(keepends=True), patch)) if patch else "") == mended
