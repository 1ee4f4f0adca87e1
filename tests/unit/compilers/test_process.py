"""The process that compiles, on bad days: it crashes, hangs, refuses the program, or leaves half a dump."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from pyshardy.compilers import process
from pyshardy.compilers.plugins import Plugin
from pyshardy.compilers.process import Job, run_job, run_jobs
from pyshardy.compilers.target import find_target
from pyshardy.errors import ShardyError

JOB = Job(b"", find_target("tpu:v5e", 8), (), ())
PLUGIN = Plugin("tpu", "libtpu 1.2.3", "")
DUMP = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[-1])
shardy = folder / "dump" / "shardy" / "m"
shardy.mkdir(parents=True)
(shardy / "02.after_propagation.mlir").write_text("module {}")
(folder / "dump" / "m.0.before_shardy-xla.hlo.pb").write_bytes(b"given")
"""
REFUSED = """
(folder / "answer.json").write_text(json.dumps({"stage": "failed", "error": "XlaRuntimeError: no\\n rule for it"}))
"""
WHO = "needed a program that libtpu 1.2.3 compiles for 8 x v5e (2x4)\n  try: --compiler none does without it"


def run(code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, timeout_s: float = 60) -> process.Answer:
    monkeypatch.setattr(process, "_WORKER", ("-c", code))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return run_job(JOB, PLUGIN, timeout_s)


def refusal(code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, timeout_s: float = 60) -> str:
    with pytest.raises(ShardyError) as raised:
        run(code, monkeypatch, tmp_path, timeout_s)
    assert list(tmp_path.iterdir()) == []  # nothing is left behind
    return str(raised.value)


def test_a_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = "import os, signal, sys; print('F1126 check failed', file=sys.stderr, flush=True); os.kill(os.getpid(), 6)"
    assert refusal(code, monkeypatch, tmp_path) == (
        f"asking the compiler: got a process that ends with SIGABRT: F1126 check failed, {WHO}"
    )


def test_a_crash_without_a_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fatal = "F1127 15:14:40.278403   11576 hlo_sharding.h:409] Check failed: !is_tiled() Please"
    code = f"import os, sys; print({fatal!r}, '    @ 0x7fd9  xla::Stack()', sep=chr(10), file=sys.stderr, flush=True); os.abort()"
    text = refusal(code, monkeypatch, tmp_path)
    assert "ends with SIGABRT: a fault of the compiler: Check failed: !is_tiled() Please, needed" in text
    assert "ends with status 3: it wrote nothing" in refusal("import sys; sys.exit(3)", monkeypatch, tmp_path)


@pytest.mark.slow
def test_a_hang_ends_with_all_that_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    marker = f"import time; time.sleep(61.25)  # {tmp_path.name}"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {marker!r}]); time.sleep(60)"
    assert refusal(code, monkeypatch, tmp_path, timeout_s=2) == (
        "asking the compiler: got no answer of libtpu 1.2.3 for 8 x v5e (2x4) in 2 s, needed more time\n"
        "  try: --timeout SECONDS"
    )
    assert marker not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def test_a_refusal_before_shardy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = f"import json, pathlib, sys\nfolder = pathlib.Path(sys.argv[-1]){REFUSED}"
    assert refusal(code, monkeypatch, tmp_path) == (f"asking the compiler: got XlaRuntimeError: no rule for it, {WHO}")


def test_half_a_dump(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = DUMP + "(shardy / '02.after_propagation.mlir').unlink()"
    assert "asking the compiler: got a process that ends with status 0" in refusal(code, monkeypatch, tmp_path)


def test_a_refusal_after_shardy_has_shardings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = run(DUMP + REFUSED, monkeypatch, tmp_path)
    assert (found.given, found.decided, found.partitioned) == (b"given", "module {}", None)
    assert found.error == "XlaRuntimeError: no rule for it"
    assert str(found) == "libtpu 1.2.3 for 8 x v5e (2x4)"


def test_a_program_that_is_to_be_compiled_to_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "_WORKER", ("-c", DUMP + REFUSED))
    job = Job(b"", JOB.target, (), (), to_the_end=True)
    with pytest.raises(ShardyError, match="no rule for it"):
        run_job(job, PLUGIN, 60)


def test_several_compile_at_the_same_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each waits until the other has begun."""
    code = (
        DUMP
        + f"""
import time
here = pathlib.Path({str(tmp_path)!r})
(here / ("begun-" + folder.name)).touch()
until = time.monotonic() + 30
while len(list(here.glob("begun-*"))) < 2 and time.monotonic() < until:
    time.sleep(0.01)
(folder / "answer.json").write_text(json.dumps({{"seconds": len(list(here.glob("begun-*")))}}))
"""
    )
    monkeypatch.setattr(process, "_WORKER", ("-c", code))
    assert [answer.seconds for answer in run_jobs([JOB, JOB], PLUGIN, 60)] == [2, 2]


def test_one_that_fails_ends_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    marker = f"61.{tmp_path.stat().st_ino}"
    code = f"""
import json, pathlib, sys, time
folder = pathlib.Path(sys.argv[-1])
if json.loads((folder / "job.json").read_text())["to_the_end"]:
    time.sleep({marker})
"""
    monkeypatch.setattr(process, "_WORKER", ("-c", code))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ShardyError, match="ends with status 0: it wrote nothing"):
        run_jobs([JOB, replace(JOB, to_the_end=True)], PLUGIN, 60)
    assert list(tmp_path.iterdir()) == []
    assert marker not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
