"""`pyshardy completion`: the script that lets a shell complete commands, options and their values."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping

_SCRIPT = """{prepare}_pyshardy() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  local IFS=$'\\n' words= files=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words={commands}
  else
    case "$command $previous" in
{values}
      *) case "$command" in
{options}
        esac ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ -n "$files" ]; then COMPREPLY+=($(compgen -f -- "$current")); fi
}}
complete -o filenames -F _pyshardy pyshardy
"""
_PREPARE = {"bash": "", "zsh": "autoload -Uz bashcompinit && bashcompinit\n"}
SHELLS = tuple(_PREPARE)
"""The shells with a script."""


def script(shell: str, commands: Mapping[str, argparse.ArgumentParser], sizes: str) -> str:
    """The script for a shell.

    Args:
        shell: One of `SHELLS`.
        commands: The parser of every command.
        sizes: The flags of the example's sizes.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--view", choices=("xla", "stablehlo"))
    >>> "'show --view') words=$'xla\\\\nstablehlo' ;;" in script("bash", {"show": parser}, "")
    True
    """
    values = [line for name, parser in commands.items() for line in _values(name, parser)]
    options = [
        f"          {shlex.quote(name)}) {_assigned(_words(parser, sizes), _takes_file(parser))} ;;"
        for name, parser in commands.items()
    ]
    lines = {"values": "\n".join(values), "options": "\n".join(options), "commands": _quoted([*commands, "--help"])}
    return _SCRIPT.format(prepare=_PREPARE[shell], **lines)


def _values(command: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """A line for every option that takes a value, with its choices or files, if they are known."""
    for action in parser._actions:
        if action.option_strings and action.nargs is None:
            pattern = "|".join(shlex.quote(f"{command} {option}") for option in action.option_strings)
            is_file = action.metavar in ("FILE", "NPZ", "DIR")
            yield f"      {pattern}) {_assigned(list(map(str, action.choices or ())), is_file)} ;;"


def _words(parser: argparse.ArgumentParser, sizes: str) -> list[str]:
    """The options of a command, and the completions of its file."""
    found = [option for action in parser._actions for option in action.option_strings]
    for action in parser._actions:
        if not action.option_strings:
            found += map(str, action.choices or ())
            found += ["example", *sizes.split()] if action.dest == "source" else []
    return found


def _takes_file(parser: argparse.ArgumentParser) -> bool:
    return any(action.dest in ("source", "script") for action in parser._actions)


def _assigned(words: list[str], with_files: bool) -> str:
    return f"words={_quoted(words)}" + (" files=1" if with_files else "")


def _quoted(words: list[str]) -> str:
    return "$'" + "\\n".join(words) + "'"
