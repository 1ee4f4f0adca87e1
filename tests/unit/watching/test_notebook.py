"""`%%sharding` in a notebook, which a kernel executes as Jupyter does."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import pytest

import pyshardy
from pyshardy.watching.inside import ENDING
from pyshardy.watching.notebook import _Names
from support.tables import column

ROOT = Path(__file__).parents[3]
MISSING = [name for name in ("nbclient", "ipykernel") if find_spec(name) is None]
BEGIN = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
step = jax.jit(lambda w, x: jnp.tanh(x @ w).sum(), in_shardings=(NamedSharding(mesh, P(None, "model")), None))
w, x = jnp.ones((16, 8)), jnp.ones((4, 16))
"""
CELLS = {
    "begin": BEGIN,
    "load": "%load_ext pyshardy",
    "shown": "%%sharding --chip h100 --compiler none\nprint('mine')\nstep(w, x)",
    "again": "%%sharding\nstep(w, x)",
    "cleared": "jax.clear_caches()",
    "chosen": "%%sharding --only nothing\nstep(w, x)\nx + 1",
    "wrong": "%%sharding --colour\nprint('not run')",
}


def run_cells() -> dict[str, list[Any]]:
    """What every cell shows."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Jupyter itself warns of is not ours
        NotebookClient(notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": str(ROOT)}}).execute()
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells)}


def printed(outputs: list[Any], stream: str = "stdout") -> str:
    return "".join(one.text for one in outputs if one.output_type == "stream" and one.name == stream)


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason="needs nbclient and ipykernel, which `make test` installs")
def test_a_cell_shows_the_programs_that_are_compiled_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("XLA_FLAGS")
    found = run_cells()
    assert found["load"] == []

    shown = [one.data for one in found["shown"] if one.output_type == "display_data"]
    assert len(shown) == 1
    assert column(shown[0]["text/plain"], "inputs", "sharding") == ["P(None, 'model')", "replicated"]
    assert "on 8 devices: data=4, model=2" in shown[0]["text/html"]
    assert "H100" in shown[0]["text/plain"]
    assert printed(found["shown"]).startswith("mine\n")
    (value,) = [one for one in found["shown"] if one.output_type == "execute_result"]
    assert value.data["text/plain"].startswith("Array(")

    assert printed(found["again"]).startswith("no program was compiled in this cell: ")
    assert "not shown, not asked for by --only: " in printed(found["chosen"])
    assert "unrecognized arguments: --colour" in str(found["wrong"]) and "not run" not in printed(found["wrong"])


class Shell:
    """What `%%sharding` uses of IPython's shell."""

    def __init__(self) -> None:
        self.magics: dict[str, Any] = {}

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        self.magics[f"{kind} {name}"] = function

    def run_cell(self, cell: str, store_history: bool) -> None:
        assert not store_history
        exec(cell, {})


@pytest.mark.skipif(bool(MISSING), reason="needs nbclient and ipykernel, which `make test` installs")
def test_the_dumps_of_the_user_go_where_they_went_before(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    pyshardy.load_ipython_extension(shell)
    before = jax.config.read("jax_dump_ir_to")
    shell.magics["cell sharding"]("", "import jax\njax.jit(lambda x: x * 3 + 1)(1.5)\nprint('mine')")
    found = capsys.readouterr().out
    assert found.startswith("mine\nnot shown, on one device: ") and "jit__lambda" in found
    assert jax.config.read("jax_dump_ir_to") == before
    with pytest.raises(ZeroDivisionError):
        shell.magics["cell sharding"]("", "1 / 0")
    assert jax.config.read("jax_dump_ir_to") == before


def test_names_of_frameworks_are_those_of_their_running_calls(tmp_path: Path) -> None:
    """A call that holds the model, as equinox's does, is running when JAX reports that it compiles."""
    text = "module @jit_f {\n  func.func public @main(%arg0: tensor<8x4xf32> loc(\"dynamic_donate['first'][0]\")) {\n"
    path = tmp_path / f"jax_1{ENDING}"
    names = _Names()
    scope: dict[str, Any] = {"__name__": "equinox._jit", "dump": lambda: (path.write_text(text), names._look("event"))}
    exec("def _call(jit_wrapper, args, kwargs):\n    dump()\n", scope)
    with names.collecting(str(tmp_path), jax):
        scope["_call"](lambda model: model, (jax.numpy.zeros((8, 4)),), {})
    assert b'loc("model")' in names.named(path)
    path.write_text(text)
    names._look("event")  # no cell runs
    with names.collecting(str(tmp_path), jax):
        pass
    assert names.named(path) == text.encode()
