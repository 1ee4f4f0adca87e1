"""Command lines that make no sense, or that mean harm: one error each, and never a traceback."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pyshardy.cli import opt
from pyshardy.cli.main import main

MLP = str(Path(__file__).parents[3] / "examples" / "mlp.mlir")
COMMANDS = ("propagate", "show", "partition", "run", "opt")
DIGITS = "9" * 5000
HUGE = ("99999999999", str(2**63), str(2**64), "1" + "0" * 40, DIGITS, "-" + DIGITS)
NAMES = ("", "a\0b", "\udcff\udc80", "\ud800", "x" * 300, "/", "missing/file", "*", "-" * 3)


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status of a command line, and what it writes to standard error."""
    status = opt.main(arguments[1:]) if arguments[:1] == ["opt"] else main(arguments)
    return status, capsys.readouterr().err


def check(status: int, errors: str) -> None:
    """Raise unless there is one error, or none and all is well."""
    assert status in (0, 1, 2)
    assert "Traceback" not in errors
    lines = [line for line in errors.splitlines() if re.match(r"([^ ]+: )?error: ", line)]
    assert len(lines) == (status != 0), errors


def numbers() -> list[list[str]]:
    """Numbers that are too large wherever a number goes."""
    flags = {
        "run": ["--devices", "--seed", "--tolerance"],
        "opt": [
            "-mlir-elide-elementsattrs-if-larger",
            "-mlir-elide-resource-strings-if-larger",
            "-verify-each",
            "-sdy-convert-global-to-local=replica-count",
            "-sdy-convert-global-to-local=partition-count",
            "-sdy-export-pipeline=replica-count",
            "-sdy-basic-propagate=module-dump-index",
        ],
    }
    return [[command, MLP, f"{flag}={number}"] for command in flags for flag in flags[command] for number in HUGE]


def sizes() -> list[list[str]]:
    """The same for the sizes of the example."""
    pytest.importorskip("pyshardy.examples")
    names = ["layers", "width", "heads", "vocabulary", "batch", "sequence", "data", "model"]
    return [["run", "example", f"--{name}={number}"] for name in names for number in (str(2**63), DIGITS, "-1")]


def names() -> list[list[str]]:
    """Names of files and values that no file and no flag has."""
    found = [[command, name] for command in COMMANDS for name in NAMES]
    found += [
        [command, MLP, "-o", name]
        for command in ("propagate", "partition", "opt")
        for name in NAMES
        if name != "x" * 300
    ]
    found += [["run", MLP, f"--inputs={name}"] for name in NAMES if name]
    found += [[command, MLP, f"--{name}"] for command in COMMANDS for name in NAMES if name]
    found += [["run", MLP, f"--engine={name}"] for name in NAMES]
    found += [[command, MLP, f"--strategy={name}"] for command in COMMANDS for name in NAMES]
    flags = ("pass-pipeline", "output-split-marker", "mlir-print-ir-after", "mlir-print-ir-before", "split-input-file",
             "verify-diagnostics", "emit-bytecode", "sdy-basic-propagate", "sdy-basic-propagate=propagation-strategy",
             "sdy-propagation-pipeline=dump-directory", "sdy-propagation-pipeline=module-dump-directory")  # fmt: skip
    return found + [["opt", MLP, f"-{flag}={name}"] for flag in flags for name in NAMES]


def shapes() -> list[list[str]]:
    """Command lines with too little or too much."""
    found = [[], [""], ["nonsense"], ["\udcff"], ["opt", MLP, "-o"], ["opt", MLP, "-pass-pipeline"], ["opt", MLP, MLP]]
    found += [[command, MLP, MLP] for command in COMMANDS]
    found += [[command, MLP, "--json", "--json"] for command in ("show", "partition")]
    found += [["run", MLP, "--devices=8", "--devices=x"], ["run", MLP, "--seed=1", "--seed=" + DIGITS]]
    found += [["show", MLP, "--conservative=" + DIGITS], ["show", MLP, "--strategy"], ["show", MLP, "--", "-x"]]
    found += [["opt", MLP, "-emit-bytecode", "-emit-bytecode=2"], ["opt", "--", "-x", "-y"]]
    return found


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which command lines run that may write files of any name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow_cases("names", "numbers")
@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize("lines", [numbers, sizes, names, shapes])
def test_one_error_each(lines: Callable[[], list[list[str]]], capsys: pytest.CaptureFixture[str]) -> None:
    for line in lines():
        try:
            check(*run(line, capsys))
        except BaseException as error:
            raise AssertionError(f"{[part[:60] for part in line]}: {error!r}") from error


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        (1, ""),
        (3, "error: x\n"),
        (0, "error: x\n"),
        (2, "error: x\nerror: y\n"),
        (1, "Traceback (most recent call last)\nerror: x"),
    ],
)
def test_what_is_wrong_is_noticed(status: int, errors: str) -> None:
    with pytest.raises(AssertionError):
        check(status, errors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", MLP, "--devices=99999999999"],
         "reading the command line: argument --devices: got '99999999999', needed a whole number from 1 to 4096"
         "\n  try: pyshardy run --help"),
        (["run", MLP, f"--seed={DIGITS}"],
         f"reading the command line: argument --seed: got '{'9' * 30}...', needed a whole number from 0 to {2**63 - 1}"
         "\n  try: pyshardy run --help"),
        (["opt", MLP, f"-mlir-elide-elementsattrs-if-larger={2**63}"],
         f"reading the flag -mlir-elide-elementsattrs-if-larger: got '{2**63}', needed a whole number from 0 to {2**63 - 1}"),
        (["opt", MLP, f"-sdy-convert-global-to-local=replica-count={2**63}"],
         f"reading option replica-count of sdy-convert-global-to-local: got '{2**63}', needed a 64-bit integer"),
        (["show", "a\0b"], "reading 'a\\x00b': got a name that no file can have, needed a readable file"),
        (["show", "x" * 300], f"reading {'x' * 300}: got file name too long, needed a readable file"),
        (["propagate", MLP, "-o", "a\0b"],
         "writing a\0b: got a name that no file can have, needed a place that can be written to"),
    ],
)  # fmt: skip
def test_what_is_said(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments, capsys) == (2, f"error: {message}\n")


MESH = 'sdy.mesh @mesh = <["x"=4]>\n'
PROGRAMS = {
    "padding beyond 64 bits": MESH
    + f"""func.func @main(%a: tensor<{2**63 - 1}xi8> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<{2**63 - 1}xi8> {{
      %0 = stablehlo.abs %a : tensor<{2**63 - 1}xi8>
      return %0 : tensor<{2**63 - 1}xi8>
    }}""",
    "a huge concatenation": MESH
    + f"""func.func @main(%a: tensor<{2**62}xi8> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<{2**62 + 3}xi8> {{
      %0 = stablehlo.constant dense<1> : tensor<3xi8>
      %1 = stablehlo.concatenate %a, %0, dim = 0 : (tensor<{2**62}xi8>, tensor<3xi8>) -> tensor<{2**62 + 3}xi8>
      return %1 : tensor<{2**62 + 3}xi8>
    }}""",
    "positions beyond 32 bits": MESH
    + f"""func.func @main(%a: tensor<{2**40}xi8> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<{2**39}xi8> {{
      %0 = stablehlo.slice %a [{2**38 + 1}:{2**39 + 2**38 + 1}] : (tensor<{2**40}xi8>) -> tensor<{2**39}xi8>
      return %0 : tensor<{2**39}xi8>
    }}""",
    "a number of expected errors": f"// expected-error {DIGITS} {{{{bad}}}}\n// expected-error@+{DIGITS} {{{{bad}}}}\nfunc.func @main() {{ return }}",
    "a million devices too many": """sdy.mesh @mesh = <["x"=2147483648]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) -> tensor<8xf32> {
      return %a : tensor<8xf32>
    }""",
    "an unknown element type": """func.func @main(%a: tensor<8x!quant.uniform<i8:f32, 1.0>>) -> tensor<4x!shape.shape> {
      %0 = "test.op"(%a) : (tensor<8x!quant.uniform<i8:f32, 1.0>>) -> tensor<4x!shape.shape>
      return %0 : tensor<4x!shape.shape>
    }""",
}


@pytest.mark.parametrize("flags", [["show", "--shard", "arg0=P('x')"], ["propagate"], ["search", "--hardware", "h100"],
                                   ["diff", "--edit", "arg0=P()"], ["cost", "--hardware", "h100"]])  # fmt: skip
def test_a_main_function_without_a_body(flags: list[str], somewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'sdy.mesh @mesh = <["x"=2]>\nfunc.func private @main(tensor<8xf32>) -> tensor<8xf32>'
    (somewhere / "in.mlir").write_text(text)
    command, *rest = flags
    status, errors = run([command, "in.mlir", *rest], capsys)
    assert status == 1 and "looking for the main function" in errors
    check(status, errors)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_mean_harm(name: str, somewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (somewhere / "in.mlir").write_text(PROGRAMS[name])
    for command in ("propagate", "show", "partition", "run"):
        check(*run([command, "in.mlir", "--allow-unregistered-dialect"], capsys))
    for flags in (["-sdy-propagation-pipeline"], ["-verify-diagnostics", "-sdy-close-shardings"],
                  ["-sdy-pad-for-divisibility", "-sdy-convert-global-to-local"]):  # fmt: skip
        status, errors = run(["opt", "in.mlir", "-allow-unregistered-dialect", *flags], capsys)
        assert status in (0, 1) and "Traceback" not in errors
