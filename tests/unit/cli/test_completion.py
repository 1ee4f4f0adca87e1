"""What a shell completes, with bash itself."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from pyshardy.cli.completion import SHELLS

from .command_line import Cli


@pytest.fixture
def script(cli: Cli) -> str:
    found = cli("completion", "bash")
    assert (found.status, found.err) == (0, "")
    return found.out


def completed(script: str, line: str, folder: Path) -> list[str]:
    """What bash offers for the last word of a line."""
    words = line.split(" ")
    ask = f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _pyshardy; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    found = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, cwd=folder, check=True)
    assert found.stderr == ""
    return [word for word in found.stdout.splitlines() if word]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "pyshardy ",
            [
                "propagate",
                "show",
                "explain",
                "diff",
                "partition",
                "cost",
                "confirm",
                "lock",
                "check",
                "doctor",
                "report",
                "search",
                "run",
                "watch",
                "completion",
                "--help",
            ],
        ),
        ("pyshardy pa", ["partition"]),
        ("pyshardy show --view ", ["xla", "tpu", "stablehlo"]),
        ("pyshardy show --notation s", ["spec", "sdy"]),
        ("pyshardy run --engine i", ["interpreter"]),
        ("pyshardy run --no-c", ["--no-check"]),
        ("pyshardy show --layers", ["--layers"]),
        ("pyshardy propagate --no-l", ["--no-locations"]),
        ("pyshardy show --mesh ", []),
        ("pyshardy show --engine", []),
        ("pyshardy show ex", ["example", "examples of mine"]),
        ("pyshardy propagate -o my", ["my file.mlir"]),
        ("pyshardy run --inputs a", ["arrays.npz"]),
        ("pyshardy show --dump-to ex", ["examples of mine"]),
        ("pyshardy show --values ", []),
        ("pyshardy completion z", ["zsh"]),
        ("pyshardy nonsense ", []),
    ],
)
def test_commands_options_values_and_files(line: str, expected: list[str], script: str, tmp_path: Path) -> None:
    (tmp_path / "my file.mlir").touch()
    (tmp_path / "arrays.npz").touch()
    (tmp_path / "examples of mine").mkdir()
    found = completed(script, line, tmp_path)
    assert [word for word in found if not word.startswith("-h")] == expected


def test_every_option_that_help_names_is_completed(
    script: str, tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyshardy.cli.main import main

    for command in ("propagate", "show", "partition", "run"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        named = {word.strip(",[]") for word in capsys.readouterr().out.split() if word.startswith(("--", "[--"))}
        assert len(named) > 10
        assert named <= set(completed(script, f"pyshardy {command} --", tmp_path))


def test_zsh_takes_the_same_behind_what_makes_it_understand(cli: Cli, script: str) -> None:
    assert cli("completion", "zsh").out == f"autoload -Uz bashcompinit && bashcompinit\n{script}"
    assert cli("completion", "csh").status == 2 and SHELLS == ("bash", "zsh")
