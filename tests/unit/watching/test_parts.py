"""The parts of `pyshardy watch`, without a script."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyshardy.errors import ShardyError, UsageError
from pyshardy.watching.analysis import Wishes, analyse
from pyshardy.watching.found import Found
from pyshardy.watching.index import index_page
from pyshardy.watching.inside import Request, Watcher, is_asked_for, read_head, why_hidden
from pyshardy.watching.names import changed_inputs, lost_names
from pyshardy.watching.running import Compiled, command_of
from pyshardy.watching.session import Session
from pyshardy.watching.worker import AnalysisTask, Worker

NEEDED = "a script, like train.py --steps 3, or a command behind --, like -- python -m trainer"
STEP = """module @jit_step attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 2 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
WISHES: dict[str, Any] = {
    "hardware": "", "compiler": "none", "by": "", "tables": {"notation": "spec", "unfold": False},
}  # fmt: skip


def test_a_program_says_its_name_and_its_devices() -> None:
    assert read_head(STEP) == read_head("#loc = loc(unknown)\n" + STEP)
    assert (read_head(STEP).name, read_head(STEP).devices, read_head(STEP).is_short) == ("jit_step", 8, True)
    quoted = 'module @"jit_<x>" {\n' + "    %0 = stablehlo.add %1, %2\n" * 10
    assert (read_head(quoted).name, read_head(quoted).devices, read_head(quoted).is_short) == ("jit_<x>", 1, False)
    assert read_head("    %0 = stablehlo.constant dense<0>\n" * 20).is_short


def test_small_programs_are_not_shown() -> None:
    own = {"add", "where"}
    one, short = read_head(STEP.replace("4 :", "1 :").replace("2 :", "1 :")), read_head(STEP.replace("step", "where"))
    inner = read_head(STEP.replace("step", "_where"))
    assert why_hidden(read_head(STEP), Request(""), own) == ""
    assert why_hidden(one, Request(""), own) == "on one device"
    assert why_hidden(short, Request(""), own) == "JAX's own, of fewer than 10 ops"
    assert why_hidden(inner, Request(""), own) == why_hidden(replace(inner, is_short=False), Request(""), own)
    assert why_hidden(inner, Request(""), own) == "JAX's own"
    assert why_hidden(replace(short, is_short=False), Request(""), own) == ""  # a user's function may have this name
    assert why_hidden(one, Request("", everything=True), own) == ""
    assert why_hidden(inner, Request("", only=("_wh*",)), own) == ""
    assert why_hidden(read_head(STEP), Request("", only=("_wh*",)), own) == "not asked for by --only"
    assert is_asked_for("jit_step", ("jit_step",)) and not is_asked_for("jit_stepper", ("step",))


@pytest.mark.parametrize(
    "given, got, hint",
    [
        ([], "no script", None),
        (["--"], "no script", None),
        (["nothing.py"], "no file nothing.py", None),
        (["python", "x.py"], "no file python", "pyshardy watch -- python x.py"),
        (["a.ipynb"], "the notebook a.ipynb", "%load_ext pyshardy in the notebook, and %%sharding at the top of a cell"),
    ],
)  # fmt: skip
def test_what_is_no_script_is_refused(given: list[str], got: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        command_of(given)
    assert (caught.value.got, caught.value.needed, caught.value.hint) == (got, NEEDED, hint)


@pytest.mark.parametrize(
    "command", [["/usr/bin/torchrun", "x.py"], ["python3.13", "-m", "torch.distributed.run", "x.py"], ["srun", "x"]]
)
def test_launchers_of_processes_elsewhere_are_refused(command: list[str]) -> None:
    name = {"torch.distributed.run": "torch.distributed.run"}.get(command[-2], os.path.basename(command[0]))
    with pytest.raises(UsageError, match=f"got {name}, which starts processes of its own"):
        command_of(["--", *command])


def test_why_a_function_is_compiled_again() -> None:
    before = {f"layers[{layer}].w": "f32[8], replicated" for layer in range(4)}
    after = dict.fromkeys(before, "f32[8], P('x')")
    assert changed_inputs(before, after)[1:] == ("  layers[0..3].w: f32[8], replicated → f32[8], P('x')",)
    assert "sharded otherwise" in changed_inputs(before, after)[0]
    assert changed_inputs({"x": "f32[8], replicated"}, {"x": "f32[9], replicated", "y": "f32[1], replicated"}) == (
        "compiled again, because inputs differ:",
        "  x: f32[8], replicated → f32[9], replicated",
        "  y: none → f32[1], replicated",
    )
    many = {f"{letter}": "f32[1], replicated" for letter in "abcdefgh"}
    assert changed_inputs({}, many)[-1] == "  and 2 more"
    assert "although its inputs" in changed_inputs(before, before)[0]


def test_numbers_in_the_place_of_names_are_said() -> None:
    (nnx,) = lost_names(["model.states[0][3]", "model.states[0][4]", "x"])
    (equinox,) = lost_names(["dynamic_nodonate['rest'][13]"])
    (keras,) = lost_names(["state[0][1]", "data[0]"])
    assert "graph=False" in nnx and "eqx.filter_jit" in equinox and "trainable_variables" in keras
    assert lost_names(["state.params['w']", "state", "x"]) == ()


@pytest.mark.slow
def test_a_program_whose_compiler_refuses_is_shown_as_for_cpus() -> None:
    found = analyse(STEP.encode(), "jit_step", Wishes(compiler="tpu:v5e:2x2"))
    assert found.propagation.answer is None
    (note,) = found.notes
    assert note.startswith("as XLA for CPUs, because tpu:v5e:2x2 was asked in vain: ")
    assert f"note: {note[:60]}" in str(found)


def test_a_program_on_several_devices_that_shards_nothing_says_so() -> None:
    text = STEP.replace('  sdy.mesh @mesh = <["x"=8]>\n', "").replace(
        ' {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}', ""
    )
    found = analyse(text.encode(), "jit_step", Wishes(compiler="none"))
    assert found.notes == ("it runs on 8 devices, and all of them do the same: nothing in it is sharded",)


def test_the_page_of_programs_escapes_their_names() -> None:
    bad = Found(1, Compiled("", "jit_<b>", 8, ""), 1, error="got <x>")
    page = index_page([bad], [{"name": "jit_&", "why": "on one device", "count": 2}]).decode()
    assert "jit_&lt;b&gt;" in page and "got &lt;x&gt;" in page and "jit_&amp;" in page and "<b>" not in page
    assert "</code> ×2: on one device" in page and "gathered whole" not in page  # no column that is empty


class FakeJax:
    """What the watcher uses of JAX."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.config = SimpleNamespace(
            update=self.values.__setitem__, read=self.values.get, jax_compilation_cache_dir=None
        )
        self.numpy = SimpleNamespace(add=None)
        self.__version__ = "0.0.1"

    def local_devices(self) -> list[Any]:
        return [SimpleNamespace(platform="cpu", device_kind="cpu")]

    def process_index(self) -> int:
        return 0


def dump(folder: Path, number: int, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"jax_ir{number:04d}_jit_step_compile.mlir").write_text(text)


def events(tmp_path: Path) -> str:
    return (tmp_path / f"{os.getpid()}.jsonl").read_text()


def test_the_watcher_ends_the_script_after_as_many_programs_as_it_is_told(tmp_path: Path) -> None:
    jax = FakeJax()
    watcher = Watcher(Request(str(tmp_path), stop_after=2), jax)
    folder = Path(jax.values["jax_dump_ir_to"])
    watcher.look("/jax/any")
    dump(folder, 0, STEP.replace("jit_step", "jit_add"))
    dump(folder, 1, STEP)
    watcher.look("/jax/any")
    watcher.look("/jax/any", 1.0, fun_name="step")
    dump(folder, 2, STEP)
    with pytest.raises(SystemExit) as caught:
        watcher.look("/jax/any")
    assert caught.value.code == 0
    assert re.findall(r'"name": "(\w+)"', events(tmp_path)) == ["jit_add", "jit_step", "jit_step"]
    assert events(tmp_path).count('"stops": true') == 1


def test_a_fault_of_the_watcher_does_not_reach_the_script(tmp_path: Path) -> None:
    jax = FakeJax()
    watcher = Watcher(Request(str(tmp_path), stop_after=1), jax)
    dump(Path(jax.values["jax_dump_ir_to"]), 0, STEP)
    jax.process_index = None  # type: ignore[assignment, method-assign]
    watcher.look("/jax/any")
    assert "not callable" in events(tmp_path)


@pytest.mark.slow
def test_a_script_with_another_jax_is_named(tmp_path: Path) -> None:
    told: list[Found] = []
    (tmp_path / "pages").mkdir()
    session = Session(AnalysisTask("", "", WISHES), told.append, str(tmp_path / "pages"))
    session.see(Compiled("", "jit_bad", 8, "", jax="0.0.1"), b"no MLIR")
    session.see(Compiled("", "jit_bad", 8, "", jax=version("jax")), b"no MLIR either")
    session.see(Compiled("", "jit_bad", 8, "on one device"), b"")
    session.finish()
    assert told[0].error.endswith(f"\n  the script runs jax 0.0.1, and pyshardy jax {version('jax')}")
    assert [one.title for one in told] == ["jit_bad", "jit_bad (2)"] and "runs jax" not in told[1].error
    assert session.others() == [{"name": "jit_bad", "why": "on one device", "count": 1}] and session.waiting == 0
    assert (tmp_path / "pages" / "01-jit_bad.mlir").read_bytes() == b"no MLIR"


def test_what_cannot_be_written_is_said_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "pages").touch()
    session = Session(AnalysisTask("", "", WISHES), lambda found: None, str(tmp_path / "pages" / "inside"))
    session.see(Compiled("", "jit_step", 8, ""), STEP.encode())
    with pytest.raises(UsageError, match="got not a directory"):
        session.finish()


@pytest.mark.slow
def test_a_worker_that_dies_or_hangs_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "step.mlir"
    path.write_text(STEP)
    task = AnalysisTask(str(path), "jit_step", WISHES)
    worker = Worker(300)
    try:
        worker._started().kill()
        with pytest.raises(ShardyError, match="analysing jit_step: got a process that ends with SIGKILL"):
            worker.ask(task)
        answer = worker.ask(task)
        assert "module @jit_step on 8 devices: x=8" in answer["text"]
        assert answer["inputs"] == {"arg0": "f32[8], P('x')"}
        worker._timeout_s = 0.001
        with pytest.raises(ShardyError, match=r"got no answer in 0.001 s\n  try: --timeout SECONDS"):
            worker.ask(task)
    finally:
        worker.close()
