"""A small campaign, and that the campaign notices what it is there to notice."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from end_to_end import number_programs, numbers_compare

import pyshardy
from pyshardy.cli import files
from pyshardy.cli import main as main_command
from pyshardy.errors import ShardyError
from pyshardy.ir.write import OpByOpWarning

from . import alone, planted, process
from .campaign import main
from .cases import KINDS, Case, mutant_of, program_of
from .corpus import bytecodes, originals
from .judge import Report, is_compilers, is_one_devices, is_readers, problems
from .mutate import mutated_bytecode, mutated_text
from .process import Finding, save
from .worker import run_command, try_mutant, try_program

MODULE = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }\n"


def test_nothing_is_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--texts=10",
        "--bytecodes=10",
        "--programs=3",
        "--workers=1",
        f"--findings={tmp_path}",
        "--seconds=60",
    ]
    assert main(arguments) == 0
    out = capfd.readouterr().out
    assert "10 bytecode" in out and "3 program" in out and "10 text" in out
    assert out.endswith("\n0 findings\n")
    assert not list(tmp_path.iterdir())


IN_A_COMMAND = {
    "traceback": "traceback: KeyError: 'missing'",
    "printed_traceback": "traceback: KeyError: 'x'",
    "half_file": "half-written file: ends in the middle of a line, exit status 1",
    "leftover": "half-written file: .pyshardy-1-0 left behind",
    "silence": "message: none",
    "noise": "message: printed by jaxlib: error: from elsewhere",
    "other_output": "wrong answer: another output the second time",
}
"""Per fault that a command can have, what is wrong then."""
IN_A_PROCESS = {
    "hang": "hang: over 6 s\n",
    "loop": "hang: over 3 s of the processor\n",
    "signals": "signal: SIGSEGV\n",
    "isolated_signal": "signal: SIGSEGV\n",
}
"""Per fault that ends a process, what is wrong then."""


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which cases are tried, in this process."""
    monkeypatch.chdir(tmp_path)
    for module, name in ((main_command, "main"), (files, "write_whole")):
        monkeypatch.setattr(module, name, getattr(module, name))  # undone at the end
    monkeypatch.setattr(numbers_compare.pyshardy.Partition, "run_flat", numbers_compare.pyshardy.Partition.run_flat)
    return tmp_path


def found_in(case: Case, trying: Any = try_mutant) -> list[str]:
    """What is wrong with a case, tried in this process."""
    told: list[dict[str, Any]] = []
    trying(case, told.append)
    return [problem for data in told if "report" in data for problem in problems(Report(**data["report"]))]


@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize("plant", IN_A_COMMAND)
def test_a_fault_of_a_command_is_found(plant: str, capfd: pytest.CaptureFixture[str]) -> None:
    seeds = (seed for seed in range(10_000) if mutant_of(Case("text", seed)).is_compared and _is_good(seed))
    case = Case("text", next(seeds))
    assert found_in(case) == []
    getattr(planted, plant)()
    assert IN_A_COMMAND[plant] in found_in(case)


def readable_seed() -> int:
    """The first seed of a text that can still be read."""
    for seed in range(100):
        try:
            pyshardy.load(mutated_text(seed)[1].decode())
        except (ShardyError, UnicodeDecodeError):
            continue
        return seed
    raise AssertionError("no text can be read")


@pytest.mark.parametrize("plant", IN_A_PROCESS)
def test_the_end_of_a_process_is_found(plant: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seconds, seed = {"hang": 0.5, "loop": 3}.get(plant, 60), readable_seed()
    arguments = [
        f"--start={seed}",
        "--texts=1",
        "--bytecodes=0",
        "--programs=0",
        f"--plant={plant}",
        "--workers=1",
        f"--seconds={seconds}",
    ]
    assert main([*arguments, f"--findings={tmp_path}"]) == 1
    out, err = capfd.readouterr()
    kind = IN_A_PROCESS[plant].partition(":")[0]
    assert f"FOUND {kind}: 1\n" in out
    (saved,) = tmp_path.iterdir()
    assert saved.name == f"text-{seed}-isolated-{kind}" if plant == "isolated_signal" else f"text-{seed}-{kind}"
    assert str(saved) in err
    assert (saved / "in.mlir").read_bytes() == mutated_text(seed)[1]
    assert (saved / "finding.txt").read_text().startswith(IN_A_PROCESS[plant])


@pytest.mark.usefixtures("somewhere")
def test_a_wrong_answer_is_found(tmp_path: Path) -> None:
    case = next(case for case in (Case("program", seed) for seed in range(100)) if _has_outputs(case))
    assert found_in(case, try_program) == []
    planted.wrong_answer()
    (problem,) = found_in(case, try_program)
    assert problem.startswith("wrong answer: ")
    folder = save(Finding(case, ["numbers"], problem), tmp_path)
    assert pyshardy.load(folder / "in.mlir")


def test_a_finding_is_kept_where_its_program_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("program", 0)
    monkeypatch.setitem(number_programs.FAMILIES, program_of(case)[0], lambda seed: str(1 // 0))
    folder = save(Finding(case, ["numbers"], "traceback: ZeroDivisionError"), tmp_path)
    assert [file.name for file in folder.iterdir()] == ["finding.txt"]


def _has_outputs(case: Case) -> bool:
    family, seed = program_of(case)
    return bool(pyshardy.propagate(pyshardy.load(number_programs.FAMILIES[family](seed))).outputs)


def _is_good(seed: int) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OpByOpWarning)  # as of mutants with resources
            module = pyshardy.load(mutated_text(seed)[1])
            for view in ("xla", "stablehlo"):
                pyshardy.propagate(module, view=view)
    except pyshardy.ShardyError:
        return False
    return True


def test_a_reader_that_ends_is_counted_apart(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--texts=1", "--bytecodes=0", "--programs=0", "--plant=reader_signal", "--workers=1", "--seconds=60"]
    assert main([*arguments, f"--start={readable_seed()}", f"--findings={tmp_path}"]) == 0
    out = capfd.readouterr().out
    assert "tried: 1 text, 1 text in a process of its own\n" in out
    assert "not of pyshardy: jaxlib's reader signal: 1\n0 findings\n" in out


GOOD_BYTECODE = pyshardy.load(MODULE).bytecode()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_readers", [False, True])
def test_a_signal_over_bytecode_is_the_readers_if_it_alone_ends(
    is_readers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not alone.ends_reader(GOOD_BYTECODE)
    if is_readers:
        monkeypatch.setattr(alone, "_READ", "import os; os.abort()")
        assert alone.ends_reader(GOOD_BYTECODE)
    arguments = ["--texts=0", "--bytecodes=1", "--programs=0", "--plant=signals", "--workers=1", "--seconds=60"]
    status = main([*arguments, f"--findings={tmp_path}"])
    out = capfd.readouterr().out
    if is_readers:  # in a process of its own the planted signal comes again, and is nobody else's
        assert "not of pyshardy: jaxlib's reader signal: 1\n" in out
    assert status == 1 and "FOUND signal: 1\n" in out


def test_a_reader_that_ends_only_sometimes_counts_as_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first").touch()
    once = f"import os\ntry: os.remove({str(tmp_path / 'first')!r})\nexcept OSError: os.abort()"
    monkeypatch.setattr(alone, "_READ", once)
    assert alone.ends_reader(GOOD_BYTECODE)


def test_a_reader_that_does_not_come_back_counts_as_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "_READ", "import time; time.sleep(60)")
    monkeypatch.setattr(alone, "_READ_SECONDS", 0.2)
    assert alone.ends_reader(GOOD_BYTECODE)


def test_a_signal_of_run_is_xlas_if_its_own_partitioner_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
    assert not alone.ends_partitioner(content, ["--view=stablehlo"])
    case = Case("text", readable_seed())
    for command, whose in ((["run", "in.mlir"], "XLA, also with its own partitioner"), (["cost", "in.mlir"], "")):
        finding = Finding(case, command, "signal: SIGSEGV", "")
        assert process._of_xla_if_alone(finding).whose == ""
        with monkeypatch.context() as patch:
            patch.setattr(alone, "_PARTITIONED", "import os; os.abort()")
            assert process._of_xla_if_alone(finding).whose == whose


def test_a_signal_over_a_program_is_xlas_if_one_of_its_convolutions_ends_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """
sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<1x1x16x1xf32>, %b: tensor<1x1x2x2xf32>) -> tensor<1x1x15x1xf32> {
  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {pad = [[0, 0], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x1x16x1xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x15x1xf32>
  return %0 : tensor<1x1x15x1xf32>
}"""
    assert not alone.ends_convolution(text.encode())
    finding = Finding(Case("program", 0), ["numbers", "op", "0"], "signal: SIGABRT", "")
    monkeypatch.setattr(process, "program_text", lambda _: text)
    assert process._of_xla_if_alone(finding).whose == ""
    monkeypatch.setattr(
        alone, "_CONVOLVE", alone._CONVOLVE.replace("    module = pyshardy", "    import os; os.abort()")
    )
    assert process._of_xla_if_alone(finding).whose == "XLA on one device, over a convolution of shards"


def test_waiting_for_the_processor_is_no_hang(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--texts=1", "--bytecodes=0", "--programs=0", "--plant=wait", "--workers=1", "--seconds=3"]
    assert main([*arguments, f"--start={readable_seed()}", f"--findings={tmp_path}"]) == 0
    assert capfd.readouterr().out.endswith("\n0 findings\n")


def test_a_compiler_that_is_slow_is_no_hang_of_ours(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--texts=1", "--bytecodes=0", "--programs=0", "--plant=slow_compiler", "--workers=1", "--seconds=2"]
    assert main([*arguments, f"--start={readable_seed()}", f"--findings={tmp_path}"]) == 0
    assert capfd.readouterr().out.endswith("\nnot of pyshardy: XLA's compiler, slowly hang: 1\n0 findings\n")


def test_a_compiler_that_is_slow_the_second_time_is_no_hang_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    case, stack = Case("program", 1), "Current thread 0x1 (most recent call first):\n"
    compiler = FRAME.format("jax/_src/compiler.py", "backend_compile_and_load")
    first, second = (Finding(case, [], "hang: over 10 s of the processor", stack + frame) for frame in ("", compiler))
    for answers, expected in (([first], [second], []), ["XLA's compiler, slowly"]), (([first], [first]), [""]):
        tries = iter(answers)
        with process.Worker(10) as worker:
            monkeypatch.setattr(worker, "_try", lambda case, seconds=0, tries=tries: next(tries))
            assert [finding.whose for finding in worker.try_case(case)] == expected


ENDLESS = """func.func @main(%a: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.while(%b = %a) : tensor<i32>
  cond {
    %1 = stablehlo.compare EQ, %b, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %b, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }
  return %0 : tensor<i32>
}"""


def test_a_program_without_an_end_is_told_from_one_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "_RUN_SECONDS", 8)
    assert not alone.runs_for_ever(MODULE.encode())
    assert not alone.runs_for_ever(b"no module")
    assert alone.runs_for_ever(ENDLESS.encode())
    monkeypatch.setattr(alone, "_RUN_SECONDS", 1)
    monkeypatch.setattr(alone, "_RUN", "import time; time.sleep(60)")  # it has not got as far as to run
    assert not alone.runs_for_ever(MODULE.encode())


@pytest.mark.parametrize("is_endless", [False, True])
def test_a_run_without_an_end_is_the_programs_if_it_has_none(is_endless: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "runs_for_ever", lambda content: is_endless)
    finding = Finding(Case("text", 1), ["run", "in.mlir"], "hang: over 10 s of the processor")
    with process.Worker(10) as worker:
        monkeypatch.setattr(worker, "_try", lambda case, seconds=0: [finding])
        assert [found.whose for found in worker.try_case(finding.case)] == ["a program without an end" * is_endless]


def test_a_worker_that_ended_between_cases_is_noticed_and_replaced() -> None:
    case = Case("text", readable_seed())
    with process.Worker(60) as worker:
        assert worker.try_case(case) == []
        assert worker._process is not None
        worker._process.kill()
        worker._process.wait()
        assert [finding.problem for finding in worker.try_case(case)] == ["signal: SIGKILL"]
        assert worker.try_case(case) == []


def test_every_fault_is_planted_in_a_test() -> None:
    faults = {name for name, value in vars(planted).items() if getattr(value, "__module__", "") == planted.__name__}
    tried = {*IN_A_COMMAND, *IN_A_PROCESS, "wrong_answer", "reader_signal", "slow_compiler", "wait"}
    assert {name for name in faults if not name.startswith("_")} == tried


GOOD = Report(["propagate", "in.mlir"], 0, file="whole")


@pytest.mark.parametrize(
    "report",
    [
        GOOD,
        Report(["show", "in.mlir"], 1, err="error: x\n  at a: error: b\n"),
        Report(["opt", "in.mlir"], 1, err="in.mlir:1:2: error: x\nin.mlir:3:4: error: y\n", file="old"),
        Report(["run", "in.mlir"], 3, out="cannot tell"),
        Report(["opt", "in.mlir"], 1, err="a text with spaces:1:2: error: x\n", file="old"),
        Report(["show", "in.mlir"], 1, err="error: got parsing 1:2: error: x\n"),
        Report(["show", "in.mlir"], 0, noise="W0000 careful"),
        Report(["search", "in.mlir"], 1, out="a plan that does not fit into memory"),
    ],
)
def test_what_is_well(report: Report) -> None:
    assert list(problems(report)) == []


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        (Report(["show"], -1, exception="Traceback (most recent call last):\nKeyError: 1"), "traceback: KeyError: 1"),
        (Report(["show"], 1, err="error: x\nTraceback (most recent call last):\nE: 1"), "traceback: E: 1"),
        (Report(["show"], 1, out="Traceback (most recent call last):\nE: 1"), "traceback: E: 1"),
        (Report(["show"], 4), "exit status: 4"),
        (Report(["show"], 1), "message: none"),
        (Report(["show"], 2, err="oh\n"), "message: none"),
        (Report(["search"], 1), "message: none"),
        (Report(["diff"], 1, out="they differ"), "message: none"),
        (Report(["show"], 1, err="error: x\nerror: y\n"), "message: 2 errors"),
        (Report(["show"], 0, err="error: x\n"), "exit status: 0 after an error"),
        (Report(["run"], 1, out="a\noutput result is wrong\n\n"), "wrong answer: output result is wrong"),
        (Report(["show"], 0, noise='loc("-":1:2): error: x\n'), 'message: printed by jaxlib: loc("-":1:2): error: x'),
        (Report(["propagate"], 0, file="old"), "half-written file: old, exit status 0"),
        (Report(["propagate"], 1, err="error: x\n", file="whole"), "half-written file: whole, exit status 1"),
        (Report(["propagate"], 1, err="error: x\n", file="gone"), "half-written file: gone, exit status 1"),
        (Report(["propagate"], 0, file="whole", leftovers=["a"]), "half-written file: a left behind"),
        (Report(["propagate"], 0, file="whole", difference="4"), "wrong answer: 4"),
    ],
)
def test_what_is_wrong(report: Report, problem: str) -> None:
    assert list(problems(report)) == [problem]


FRAME = '  File "/x/{}", line 1 in {}\n'
PARSE, LOAD = (
    FRAME.format("pyshardy/ir/module.py", "parse"),
    FRAME.format("pyshardy/frontend/from_text.py", "read_module"),
)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([PARSE, LOAD], True),
        ([FRAME.format("jaxlib/mlir/x.py", "f"), PARSE, LOAD], True),
        ([FRAME.format("pyshardy/ir/hlo.py", "_convert"), LOAD], True),
        ([PARSE, FRAME.format("pyshardy/cli/opt.py", "_transform")], True),
        ([PARSE, FRAME.format("pyshardy/ir/write.py", "write")], False),  # over what we wrote
        ([PARSE], False),
        ([FRAME.format("pyshardy/ir/read.py", "f"), PARSE, LOAD], False),
        ([PARSE, FRAME.format("pyshardy/frontend/isolated.py", "read_isolated"), LOAD], False),
        ([], False),
    ],
)
def test_whose_fault_a_signal_is(frames: list[str], expected: bool) -> None:
    stack = (
        f"Fatal Python error\n\nCurrent thread 0x1 (most recent call first):\n{''.join(frames)}\nExtension modules: a"
    )
    assert is_readers(stack) is expected


def test_what_xla_does_on_one_device() -> None:
    assert is_one_devices(FRAME.format("pyshardy/runtime/execute.py", "run_on_one_device"))
    assert not is_one_devices(FRAME.format("pyshardy/runtime/local.py", "__call__"))


def test_whom_a_hang_is_of() -> None:
    start, caller = (
        "Current thread 0x1 (most recent call first):\n",
        FRAME.format("pyshardy/runtime/exported.py", "_refusing"),
    )
    compiler = FRAME.format("jax/_src/compiler.py", "backend_compile_and_load")
    assert is_compilers(start + compiler + caller)
    assert not is_compilers(start + caller + compiler) and not is_compilers(start) and not is_compilers("")


@pytest.mark.parametrize("broken", [b"", b"module {", b"module {\n", b"ML\xefR\x00", b"\xff\n"])
def test_a_broken_output_is_noticed(broken: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["propagate", "in.mlir", "-o", "out.mlir"]
    assert run_command(command, MODULE.encode()).file == "whole"
    monkeypatch.setattr(files, "write_whole", lambda path, _: Path(path).write_bytes(broken) and None)
    assert run_command(command, MODULE.encode()).file not in ("whole", "old", "")
    monkeypatch.setattr(files, "write_whole", lambda path, _: Path(path).unlink())
    assert run_command(command, MODULE.encode()).file == "gone"


def test_seeds_give_the_same_and_different_mutants() -> None:
    texts = [mutated_text(seed)[1] for seed in range(100)]
    codes = [mutated_bytecode(seed)[1] for seed in range(100)]
    assert [mutated_text(seed)[1] for seed in range(100)] == texts
    assert [mutated_bytecode(seed)[1] for seed in range(100)] == codes
    known = {original.text.encode() for original in originals()}, {content for _, content in bytecodes()}
    for found, originally in zip((texts, codes), known):
        assert len(set(found)) > 95
        assert sum(mutant in originally for mutant in found) < 15
    assert len({json.dumps(mutant_of(Case("text", seed)).commands) for seed in range(100)}) > 30


def test_some_mutants_are_programs() -> None:
    assert 5 < sum(map(_is_good, range(100))) < 90


def test_kinds() -> None:
    assert KINDS == ("text", "bytecode", "program")
