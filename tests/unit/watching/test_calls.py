"""Names that frameworks do not hand to JAX, from their running calls; `tests/packages/test_watch.py` has real ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from pyshardy.watching import calls
from pyshardy.watching.calls import names_of_calls
from pyshardy.watching.names import with_names

W, X = np.zeros((8, 4)), np.zeros((2, 8))
NUMBERED = "module {\n  func.func public @main(%arg0: tensor<8x4xf32> loc(\"dynamic_nodonate['rest'][0]\")) {"


def inside(module: str, code: str, **names: Any) -> Any:
    """What a function of a framework's module returns, which calls `names_of_calls` as JAX does when it compiles."""
    scope: dict[str, Any] = {"__name__": module, "names_of_calls": names_of_calls, **names}
    exec(code, scope)
    return scope["found"]


def step(model: Any, *more: Any, scale: float = 1.0) -> None:
    """A training step."""


EQUINOX = """
def _call(jit_wrapper, args, kwargs):
    return names_of_calls(text)
found = _call(step, args, kwargs)
"""


def test_arrays_that_equinox_numbers() -> None:
    found = inside("equinox._jit", EQUINOX, text=NUMBERED, step=step, args=({"w": W}, X), kwargs={"scale": 2.0})
    assert found["dynamic_nodonate['first'][0]"] == ("model['w']", [8, 4])
    assert found["dynamic_donate['rest'][0]"] == ("more[0]", [2, 8])
    assert found["dynamic_nodonate['rest'][1]"] == ("scale", [])
    assert found["result[1]*"] == ("result", [])


def test_nothing_is_looked_up_if_no_name_is_a_number() -> None:
    assert inside("equinox._jit", EQUINOX, text='loc("x")', step=None, args=(), kwargs={}) == {}
    assert inside("elsewhere", EQUINOX, text=NUMBERED, step=step, args=({"w": W},), kwargs={}) == {}


def test_another_version_of_a_framework_leaves_the_numbers() -> None:
    assert inside("equinox._jit", EQUINOX, text=NUMBERED, step=step, args=None, kwargs={}) == {}
    assert inside("equinox._jit", EQUINOX, text=NUMBERED, step=step, args=(), kwargs={}) == {}


LOWERING = "/jax/core/compile/jaxpr_to_mlir_module_duration"
LOWER = """
def _call(jit_wrapper, args, kwargs):
    note_lowering(event, name)
found = _call(step, args, kwargs)
"""


def lower(model: Any, name: str = "jit(step)", event: str = LOWERING) -> None:
    given = {"step": step, "args": (model,), "kwargs": {}, "name": name, "event": event}
    inside("equinox._jit", LOWER, note_lowering=calls.note_lowering, **given)


def test_what_is_compiled_when_the_call_that_lowered_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_lowered", {})
    text = "module @jit_step attributes {\n" + NUMBERED.partition("\n")[2]
    lower({"w": W}, event="/jax/another")
    lower({"w": W}, "jit(other)")
    assert names_of_calls(text) == {}
    lower({"w": W})
    lower({"w": W})
    assert names_of_calls(text)["dynamic_nodonate['first'][0]"] == ("model['w']", [8, 4])
    lower({"v": W})  # which of the two programs is compiled, nobody knows
    assert names_of_calls(text) == {}


def test_paths_that_haliax_puts_behind_numbers() -> None:
    code = "def _call(self, is_lower, *args, **kwargs):\n    return names_of_calls(text)\n"
    code += "found = _call(step, False, model, x, scale=x)"
    found = inside("haliax.partitioning", code, text=NUMBERED, step=step, model={"w": W}, x=X)
    assert found["dynamic_reserved[1][0][0]['w']"] == ("model['w']", [8, 4])
    assert found["dynamic_donated[1][0][1]"] == ("more[0]", [2, 8])
    assert found["dynamic_reserved[1][1]['scale']"] == ("scale", [2, 8])


def test_variables_of_keras() -> None:
    def variables(*paths: str) -> list[Any]:
        return [SimpleNamespace(path=path, shape=(8, 4)) for path in paths]

    model = SimpleNamespace(
        trainable_variables=variables("dense/kernel", "dense/bias"), non_trainable_variables=variables("seed"),
        metrics_variables=variables("loss"), optimizer=SimpleNamespace(variables=variables("adam/kernel_momentum")),
    )  # fmt: skip
    code = "def fit(self):\n    return names_of_calls(text)\nfound = fit(model)"
    text = NUMBERED.replace("dynamic_nodonate['rest'][0]", "state[0][1]")
    found = inside("keras.src.backend.jax.trainer", code, text=text, model=model)
    assert {name: found[name][0] for name in ("state[0][1]", "state[1][0]", "state[2][0]", "state[3][0]")} == {
        "state[0][1]": "model['dense/bias']", "state[1][0]": "model['seed']",
        "state[2][0]": "optimizer['adam/kernel_momentum']", "state[3][0]": "metrics['loss']",
    }  # fmt: skip
    assert found["result[1][0][0]"][0] == "result[1].model['dense/kernel']"
    found = inside("keras.src.backend.jax.trainer", code.replace("fit", "evaluate"), text=text, model=model)
    assert found["state[2][0]"][0] == "metrics['loss']"


def test_names_are_put_where_the_sizes_fit() -> None:
    text = (
        b'#loc1 = loc("a[0]")\nmodule @jit_f {\n'
        b'  func.func public @main(%arg0: tensor<8x4xf32> {jax.buffer_donor = true} loc("a[0]"), '
        b'%arg1: tensor<2xui32> loc("a[1]")) -> (tensor<8x4xf32> {jax.result_info = "result[0][0]"}) {\n'
        b"  return %arg0 : tensor<8x4xf32> loc(#loc1)\n"
    )
    names = {"a[0]": ("m['q\"']", [8, 4]), "a[1]": ("key", []), "result[0][0]": ("result.m", [8, 4])}
    changed = with_names(text, names)
    assert changed.count(b'loc("m[\'q\\"\']")') == 2 and b'loc("key")' in changed and b'"result.m"' in changed
    assert with_names(text, {"a[0]": ("m", [4, 8]), "result[0][0]": ("r", [8, 4, 1])}) == text
    assert with_names(b"no program", names) == b"no program"


def test_a_variable_alone_has_the_name_of_its_path() -> None:
    infos = ["result[2]['up']['kernel'].states[0][0]", "result[3].states[0][0]", "result[3].states[0][1]"]
    results = ", ".join(f'tensor<8xf32> {{jax.result_info = "{info}"}}' for info in infos)
    text = f"  func.func public @main(%arg0: tensor<8xf32> loc(\"grads['up'].states[0][0]\")) -> ({results}) {{"
    changed = with_names(text.encode(), {}).decode()
    assert "loc(\"grads['up'].value\")" in changed and "\"result[2]['up']['kernel'].value\"" in changed
    assert changed.count(".states[0]") == 2 and '"result[3].states[0][0]"' in changed  # a model of two arrays


def test_a_name_with_a_star_stands_for_all_that_begin_with_it() -> None:
    text = b"  func.func public @main() -> (%s) {"
    infos = ["result[0]", "result[1]", "result[1].w", "result[1][0]", "result[10]", "result[1]x"]
    results = ", ".join(f'tensor<8xf32> {{jax.result_info = "{info}"}}' for info in infos)
    names = {"result[0]": ("result.marker", []), "result[1]*": ("result", [])}
    changed = with_names(text % results.encode(), names).decode()
    assert [part.split('"')[0] for part in changed.split('jax.result_info = "')[1:]] == [
        "result.marker", "result", "result.w", "result[0]", "result[10]", "result[1]x",
    ]  # fmt: skip


def test_the_file_imports_only_what_a_script_has() -> None:
    source = Path(calls.__file__).read_text(encoding="utf-8")
    assert "import pyshardy" not in source and "from pyshardy" not in source and "\nimport jax" not in source


def test_the_function_behind_torchax() -> None:
    def call_torch(function: Any, *args: Any) -> None:
        """What torchax jits."""

    code = "def call_jax(jax_func, *args, **kwargs):\n    return names_of_calls(text), function_of_calls(name)\n"
    code += "found = call_jax(function, {'w': w}, x)"
    text = NUMBERED.replace("dynamic_nodonate['rest'][0]", "args[0]['w']")
    given = {"text": text, "w": W, "x": X, "function_of_calls": calls.function_of_calls}
    for function in (step, partial(step)):
        jitted = jax.jit(partial(call_torch, function))
        names, name = inside("torchax.interop", code, name="jit_call_torch", function=jitted, **given)
        assert (names["args[0]['w']"], names["args[1]"]) == (("model['w']", [8, 4]), ("more[0]", [2, 8]))
        assert name == "jit_step"
    names, name = inside("torchax.interop", code, name="jit_call_torch", function=None, **given)
    assert (names, name) == ({}, "jit_call_torch")
    assert calls.function_of_calls("jit_init") == "jit_init"


def test_arguments_without_names() -> None:
    text = NUMBERED.replace("loc(\"dynamic_nodonate['rest'][0]\")", "loc(unknown), %arg1: tensor<2x8xf32> loc(unknown)")
    code = "def jit(fun):\n    def cache_miss(*args, **kwargs):\n        return names_of_calls(text) if fun else None\n"
    code += "    return cache_miss\nfound = jit(fun)(w, x)"
    found = inside("jax._src.pjit", code, text=text, fun=step, w=W, x=X)
    assert found == {"%0": ("model", [8, 4]), "%1": ("more[0]", [2, 8])}
    named = with_names(text.encode(), found).decode()
    assert '8x4xf32> loc("model"), %arg1: tensor<2x8xf32> loc("more[0]")' in named
    assert with_names(text.encode(), {"%0": ("model", [8, 4])}).decode() == text  # one is left out
    assert with_names(text.encode(), {**found, "%1": ("more[0]", [8, 2])}).decode() == text
