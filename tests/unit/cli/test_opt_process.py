"""`pyshardy-opt` as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyshardy.cli import opt
from pyshardy.cli.opt import main
from pyshardy.ir.module import Module

from .opt_command_line import GOOD, GROUPED, PRINTED, SHARDED, WITH_UNUSED, Outcome, Put, run


@pytest.mark.slow
def test_as_a_program(put: Put) -> None:
    source = put(WITH_UNUSED)
    command = [sys.executable, "-m", "pyshardy.opt"]
    done = subprocess.run([*command, "-", "-symbol-dce"], input=WITH_UNUSED, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, PRINTED, "")
    done = subprocess.run([*command, source, "-zzz"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: reading the command line: got unknown flag '-zzz'")


def test_the_command_line_of_the_process(
    put: Put, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pyshardy-opt", put(GOOD)])
    assert main() == 0
    assert capfdbinary.readouterr().out == PRINTED.encode()
    assert main(["-zzz"]) == 2
    assert b"unknown flag '-zzz'" in capfdbinary.readouterr().err


def test_interrupting_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(opt, "run_opt", interrupt)
    assert main(["-"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


@pytest.mark.slow
def test_passes_run_without_jax_and_without_tables(put: Put) -> None:
    code = (
        "import io, sys; from pyshardy.cli.opt import run_opt; "
        f"status = run_opt([{put(SHARDED)!r}, '-sdy-propagation-pipeline'], io.BytesIO(), sys.stderr); "
        "print(status, sorted({'jax', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 []\n", "")


NOT_NEEDED = (
    "difflib", "fractions", "importlib.metadata", "jax", "json", "numpy", "rich", "tempfile",
    "jaxlib.mlir.dialects.builtin", "jaxlib.mlir.dialects.mhlo", "jaxlib.mlir.dialects.stablehlo",
    "pyshardy.cli.expectations", "pyshardy.cli.progress", "pyshardy.core.identities", "pyshardy.ir.plain_attributes",
    "pyshardy.passes.exporting.inline_meshes", "pyshardy.transforms.local.table",
    "pyshardy.passes.partitioning.convert_global_to_local", "pyshardy.report.summary", "pyshardy.core.collectives", "pyshardy.rules.einsum",
)  # fmt: skip
"""What costs time to import and is not needed to propagate; jaxlib itself imports re and inspect."""


LISTING_MODULES = """import os, sys
end = os._exit
os._exit = lambda status: (print(*sys.modules, file=sys.stderr, flush=True), end(status))
from pyshardy.opt import main
main()
"""


def imported_modules(*arguments: str) -> set[str]:
    """What a process of `pyshardy-opt` has imported at its end."""
    done = subprocess.run([sys.executable, "-c", LISTING_MODULES, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout != "") == (0, True)
    return set(done.stderr.split())


def test_a_process_imports_no_more_than_it_needs(put: Put) -> None:
    found = imported_modules(put(SHARDED), "-sdy-propagation-pipeline")
    assert {"jaxlib.mlir.ir", "pyshardy.passes.exporting.close_shardings"} <= found
    assert found.isdisjoint(NOT_NEEDED), sorted(found & set(NOT_NEEDED))


def test_what_a_process_imports_without_need_is_noticed(put: Put) -> None:
    found = imported_modules(put(SHARDED), "-sdy-inline-meshes", "-verify-diagnostics")
    assert {"pyshardy.passes.exporting.inline_meshes", "pyshardy.cli.expectations"} <= found & set(NOT_NEEDED)


PADDED = """sdy.mesh @m = <["x"=4]>
func.func @main() -> tensor<6xf32> {
  %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} dense<[1., 2., 3., 4., 5., 6.]> : tensor<6xf32>
  %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@m, [{}]> : tensor<6xf32>
  return %1 : tensor<6xf32>
}"""


@pytest.mark.slow
def test_a_pass_that_needs_numpy_has_it(put: Put) -> None:
    assert "numpy" in imported_modules(put(PADDED), "-sdy-pad-for-divisibility")
    done = subprocess.run(
        [sys.executable, "-m", "pyshardy.opt", put(PADDED), "-sdy-pad-for-divisibility"], capture_output=True, text=True
    )
    assert "6.000000e+00, 0.000000e+00, 0.000000e+00]> : tensor<8xf32>" in done.stdout


@pytest.mark.slow
def test_a_process_of_its_own_does_what_a_call_does(put: Put, tmp_path: Path) -> None:
    source, output = put(f"{SHARDED}// -----\n{GROUPED}"), tmp_path / "out.mlir"
    for flags in (
        ["-sdy-propagation-pipeline", "-mlir-print-ir-after-all", "-split-input-file"],
        ["-sdy-sharding-group-import", "-split-input-file"],
        ["-sdy-drop-sharding-rules", "-mlir-print-ir-before-all", "-split-input-file"],
        ["-split-input-file", "-o", str(output)],
    ):
        done = subprocess.run([sys.executable, "-m", "pyshardy.opt", source, *flags], capture_output=True, text=True)
        assert Outcome(done.returncode, done.stdout, done.stderr) == run(source, *flags)
    assert output.read_text().count("module") == 2


@pytest.mark.slow
def test_all_that_a_process_prints_arrives(put: Put) -> None:
    functions = "".join(f"func.func @f{number}() {{ return }}\n" for number in range(5000))
    done = subprocess.run([sys.executable, "-m", "pyshardy.opt", put(functions)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, Module.parse(functions).text())
