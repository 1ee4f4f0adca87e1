"""`pyshardy watch` on scripts that know nothing of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from socket import socket

import pytest

from pyshardy.watching import running
from pyshardy.watching.inside import Request
from pyshardy.watching.running import Compiled, command_of, run
from support.tables import column

from .scripts import AGAIN, PRODUCT_LINE, STUBBORN, TRAIN, TWO_PROCESSES, UNREADABLE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
OWN_OUTPUT = "step 0\nstep 1\ndevices 8 ['--lr', '3']\nclean-up\n"


def environment(**changes: str) -> dict[str, str]:
    """That of a user, without the devices of these tests."""
    kept = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **changes}


def watch(
    folder: Path, script: str, *options: str, args: tuple[str, ...] = (), launcher: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(script)
    behind = [*launcher, *args] if launcher else ["train.py", *args]
    command = [sys.executable, "-m", "pyshardy", "watch", "--compiler", "none", *options, *behind]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def test_every_program_is_shown_and_the_script_is_untouched(tmp_path: Path) -> None:
    found = watch(tmp_path, TRAIN, "--devices", "8", "--chip", "v5e", args=("--lr", "3"))
    assert (found.returncode, found.stdout) == (3, OWN_OUTPUT)
    assert "to standard error\n" in found.stderr
    first, second = re.split(r"^─── pyshardy: .* ───$", found.stderr, flags=re.MULTILINE)[1:]
    assert re.findall(r"─── pyshardy: (.*), 8 devices", found.stderr) == ["jit_init", "jit_train_step"]
    assert "module @jit_init on 8 devices: data=4, model=2" in first
    assert column(second, "inputs", "name") == ["params['down']", "params['up']", "x"]
    assert column(second, "inputs", "sharding") == ["P('model')", "P(None, 'model')", "P('data')"]
    assert column(second, "outputs", "name")[:2] == ["result[0]['down']", "result[0]['up']"]
    assert f"train.py:{PRODUCT_LINE}" in column(second, "collectives (estimated by the formula model)", "source")
    assert "estimated cost on 8 x TPU v5e" in second
    kept = "--report DIR keeps the programs, for pyshardy doctor and pyshardy explain"
    assert f"pyshardy: 2 programs shown\npyshardy: {kept}\npyshardy: not shown, on one device: " in second
    assert column(second, "programs of the script (estimated)", "program") == ["jit_init", "jit_train_step"]
    assert column(second, "programs of the script (estimated)", "costliest line") == ["", f"train.py:{PRODUCT_LINE}"]


def test_a_dry_run_ends_before_the_program_runs(tmp_path: Path) -> None:
    found = watch(tmp_path, TRAIN, "--devices", "8", "--only", "train_step", "--dry")
    assert (found.returncode, found.stdout) == (0, "clean-up\n")
    assert re.findall(r"─── pyshardy: (.*), 8 devices", found.stderr) == ["jit_train_step"]
    assert "the script was ended before the last of these ran" in found.stderr
    assert "Traceback" not in found.stderr


def test_it_is_ended_before_the_second_program(tmp_path: Path) -> None:
    found = watch(tmp_path, TRAIN, "--devices", "8", "--stop-after", "2", "-o", "out.txt")
    assert (found.returncode, found.stdout, "pyshardy" in found.stderr) == (0, "clean-up\n", False)
    assert (tmp_path / "out.txt").read_text().count("─── pyshardy: ") == 2


def test_a_script_that_ends_earlier_says_so(tmp_path: Path) -> None:
    found = watch(tmp_path, TRAIN, "--devices", "8", "--stop-after", "9", "--only", "init")
    assert found.returncode == 3 and "the script ended with status 3: fewer programs were shown" in found.stderr


def test_a_script_that_fails_before_it_has_devices_says_so(tmp_path: Path) -> None:
    found = watch(tmp_path, "import sys\nsys.exit('no data')", "--devices", "8")
    assert (found.returncode, "no data\n" in found.stderr) == (1, True)
    assert found.stderr.endswith("pyshardy: the script ended with status 1 before it made JAX devices\n")


def test_json_and_pages(tmp_path: Path) -> None:
    found = watch(tmp_path, TRAIN, "--devices", "8", "--json", "-o", "out.json", "--report", "pages", "--by", "line")
    assert found.returncode == 3 and "to standard error\n" in found.stderr and "pyshardy" not in found.stderr
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["script"] == {
        "command": [sys.executable, "train.py"], "running": False, "status": 3, "stopped": False, "watched": True,
    }  # fmt: skip
    init, step = data["programs"]
    assert (init["name"], init["version"], step["name"], step["devices"]) == ("jit_init", 1, "jit_train_step", 8)
    assert [row["spec"] for row in step["shardings"]["inputs"]] == [["model"], [None, "model"], ["data"]]
    assert step["cost"]["estimated"]["step_seconds"] > 0 and step["cost"]["by_line"]
    assert {one["why"] for one in data["others"]} == {"on one device"}

    pages = tmp_path / "pages"
    assert sorted(path.name for path in pages.iterdir()) == [
        "01-jit_init.html", "01-jit_init.mlir", "02-jit_train_step.html", "02-jit_train_step.mlir", "index.html",
    ]  # fmt: skip
    assert '<a href="02-jit_train_step.html">jit_train_step</a>' in (pages / "index.html").read_text()
    assert "params['up']" in (pages / "02-jit_train_step.mlir").read_text()
    page = (pages / "02-jit_train_step.html").read_text()  # the page and the tables have one estimate
    assert f'"peak":{{"bytes":{step["cost"]["estimated"]["memory"]["bytes"]},' in page and "A run, estimated" in page


@pytest.mark.parametrize(
    "launcher", [(sys.executable, "-m", "train"), ("sh", "-c", f"{sys.executable} train.py $0 $1")], ids=["-m", "sh"]
)
def test_any_launcher_that_keeps_the_environment(launcher: tuple[str, ...], tmp_path: Path) -> None:
    found = watch(tmp_path, TRAIN, "--devices", "8", args=("--lr", "3"), launcher=("--", *launcher))
    assert (found.returncode, found.stdout) == (3, OWN_OUTPUT)
    assert "pyshardy: 2 programs shown" in found.stderr


def test_a_python_that_ignores_the_watcher_is_followed_by_its_dumps(tmp_path: Path) -> None:
    launcher = ("--", sys.executable, "-I", "train.py")
    found = watch(tmp_path, TRAIN, "--devices", "8", "--dry", "--only", "train_step", launcher=launcher)
    assert found.returncode == 3 and "step 1\n" in found.stdout
    assert re.findall(r"─── pyshardy: (.*), 8 devices", found.stderr) == ["jit_train_step"]
    assert "the script was not ended, as JAX did not load the watcher" in found.stderr


def test_what_cannot_be_read_is_said_and_the_script_goes_on(tmp_path: Path) -> None:
    found = watch(tmp_path, UNREADABLE, "--devices", "8")
    assert (found.returncode, found.stdout) == (0, "8.0\n")
    (told,) = [line for line in found.stderr.splitlines() if "not analysed" in line]
    assert told.startswith("not analysed; the script goes on: reading a module: got ")
    assert "module @jit_good on 8 devices" in found.stderr and "Traceback" not in found.stderr


def test_a_function_that_is_compiled_again(tmp_path: Path) -> None:
    found = watch(tmp_path, AGAIN, "--devices", "8")
    assert re.findall(r"─── pyshardy: (.*), 8 devices", found.stderr) == ["jit_f", "jit_f (2)"]
    assert "inputs are sharded otherwise; out_shardings" in found.stderr
    assert "  w: f32[8], replicated → f32[8], P('data')\n" in found.stderr
    assert "pyshardy: jit_f (2) was compiled 2 times, alike each time\n" in found.stderr


def test_process_0_speaks(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO_PROCESSES)
    with socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    both = f"{sys.executable} two.py {port} 1 & {sys.executable} two.py {port} 0; wait"
    found = watch(tmp_path, "", "--devices", "4", "-o", "out.txt", launcher=("--", "sh", "-c", both))
    assert (found.returncode, "pyshardy" in found.stderr) == (0, False)
    assert [(tmp_path / f"{number}.txt").read_text() for number in range(2)] == ["1240.0", "1240.0"]
    assert re.findall(r"─── pyshardy: (.*) ───", (tmp_path / "out.txt").read_text()) == ["jit_total, 8 devices"]


def test_every_process_may_be_watched_by_its_own_and_process_0_speaks(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO_PROCESSES)
    with socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "pyshardy", "watch", "--compiler", "none", "--devices", "4", "two.py", str(port), number],
            cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for number in "01"
    ]  # fmt: skip
    first, second = (child.communicate(timeout=120)[1] for child in children)
    assert [child.returncode for child in children] == [0, 0]
    assert "─── pyshardy: jit_total, 8 devices ───" in first and "pyshardy: 1 program shown" in first
    assert "pyshardy" not in second


def test_the_users_own_dumps_are_still_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_DUMP_IR_TO", str(tmp_path / "mine"))
    found = watch(tmp_path, TRAIN, "--devices", "8")
    assert "pyshardy: 2 programs shown" in found.stderr
    assert len(list((tmp_path / "mine").glob("*_jit_train_step_compile.mlir"))) == 1


def test_a_file_that_cannot_be_written_does_not_hide_the_status(tmp_path: Path) -> None:
    script = "import shutil\nshutil.rmtree('pages')\n" + TRAIN
    found = watch(tmp_path, script, "--devices", "8", "--report", "pages")
    assert (found.returncode, found.stdout.startswith("step 0\n")) == (3, True)
    assert found.stderr.splitlines()[-1].startswith("error: writing pages/01-jit_init.mlir: got no such file")


def test_a_script_that_does_not_end_when_asked_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "_GRACE_S", 0.5)
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    seen: list[Compiled] = []
    begin = time.monotonic()
    command = command_of([str(tmp_path / "stubborn.py")])
    found = run(command, Request("", stop_after=1, devices=8), environment(), lambda one, _: seen.append(one))
    assert (found.status, found.stopped, time.monotonic() - begin < 60) == (0, True, True)
    assert [one.name for one in seen if not one.hidden] == ["jit__lambda"]
    assert capfd.readouterr().out == "SystemExit\n"


def test_a_signal_is_handed_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('here', flush=True)\nimport time\ntime.sleep(100)")
    command = [sys.executable, "-m", "pyshardy", "watch", "train.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"here\n"
        child.send_signal(signal.SIGTERM)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 128 + signal.SIGTERM
    assert b"no program is shown" in said and b"Traceback" not in said


def test_ctrl_c_ends_the_script_as_it_likes(tmp_path: Path) -> None:
    script = "import sys, time\ntry:\n    print('here', flush=True)\n    time.sleep(100)\nexcept KeyboardInterrupt:\n    sys.exit(5)"
    (tmp_path / "train.py").write_text(script)
    command = [sys.executable, "-m", "pyshardy", "watch", "train.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"here\n"
        os.killpg(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 5
    assert b"no program is shown" in said and b"Traceback" not in said
