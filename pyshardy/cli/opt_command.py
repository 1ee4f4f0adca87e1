"""The command line of `pyshardy-opt`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyshardy.cli.numbers import whole_number
from pyshardy.core.options import did_you_mean
from pyshardy.core.text import STANDARD_INPUT
from pyshardy.errors import UsageError
from pyshardy.passes.base import Pass
from pyshardy.passes.pipelines import PIPELINES, is_pass_or_pipeline, named_passes, parse_option_text, parse_pipeline
from pyshardy.passes.table import PASSES, pass_class

DEFAULT_SEPARATOR = "// -----"

_FLAGS = {
    "allow-unregistered-dialect": "accept ops of unknown dialects, in generic form",
    "isolate": "read the input in a separate process: for untrusted bytecode, which may crash MLIR's reader",
    "mlir-print-op-generic": "print every op in generic form",
    "mlir-print-debuginfo": "print locations",
    "mlir-pretty-debuginfo": "print locations for people; they cannot be read again",
    "mlir-print-local-scope": "print attributes and types where they stand, without aliases",
    "mlir-use-nameloc-as-prefix": "name values after their locations",
    "emit-bytecode": "write MLIR bytecode instead of text",
    "mlir-timing": "show the time that every pass took, on standard error",
    "mlir-print-ir-before-all": "print the module before every pass, on standard error; slow, as all dumps are",
    "mlir-print-ir-after-all": "print the module after every pass, on standard error",
    "mlir-print-ir-after-change": "print only if the pass changed something",
    "mlir-print-ir-after-failure": "print the module only after a pass that failed",
    "mlir-print-ir-module-scope": "print the whole module before and after passes on functions",
    "dump-pass-pipeline": "print the passes that run as a pipeline, on standard error",
    "show-passes": "list the passes with what they do",
}
"""Boolean flags, with their descriptions."""

_CHOICES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "verify-diagnostics": (
        "all",
        ("all", "only-expected"),
        "check the diagnostics against 'expected-...' comments; with only-expected, others may come",
    ),
    "verify-each": (
        "true",
        (),
        "verify after every pass, which is several times slower, because it writes the module each time; 0: never; "
        "without the flag once at the end, and the pass at fault is looked for when that fails",
    ),
}
"""Flags with an optional value: the default value, the values besides true and false, the description."""

_VALUES = {
    "o": ("FILE", "where to write the result; - is standard output"),
    "pass-pipeline": ("TEXT", "passes in MLIR's textual form"),
    "output-split-marker": ("TEXT", f"what separates the modules in the output (default '{DEFAULT_SEPARATOR}')"),
    "mlir-print-ir-before": ("PASSES", "print the module before these passes, separated by commas"),
    "mlir-print-ir-after": ("PASSES", "print the module after these passes"),
    "mlir-elide-elementsattrs-if-larger": ("N", "shorten constants of more than N elements"),
    "mlir-elide-resource-strings-if-larger": ("N", "shorten resources of more than N characters"),
}
"""Flags that need a value: its name, the description."""

_IGNORED = {
    "no-implicit-module": "a module is printed as one in any case",
    "mlir-print-op-on-diagnostic": "diagnostics show the line of the source",
    "mlir-disable-threading": "there is one thread",
    "mlir-print-stacktrace-on-diagnostic": "there is no stack of C++",
    "mlir-timing-display": "there is one form",
}
"""Flags of MLIR without effect here, with the reason."""

_LARGEST_LIMIT = 2**63 - 1
_BOOLEANS = dict.fromkeys(("true", "TRUE", "True", "1"), True)
_BOOLEANS |= dict.fromkeys(("false", "FALSE", "False", "0"), False)


@dataclass(slots=True)
class Command:
    """A parsed command line.

    Attributes:
        passes: The passes, in command-line order.
        flags: The flags that are set.
        values: The values of flags.
        source: The input file.
        output: The output file; None for standard output.
    """

    passes: list[Pass] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    source: str = STANDARD_INPUT
    output: str | None = None

    @property
    def separator(self) -> str | None:
        """The separator of the modules in the input; None if there is one module."""
        return self.values.get("split-input-file")

    @property
    def is_verifying_diagnostics(self) -> bool:
        """Whether to compare diagnostics with the expected ones."""
        return "verify-diagnostics" in self.values

    def limit(self, name: str) -> int | None:
        """The value of a flag as a number."""
        text = self.values.get(name)
        return None if text is None else int(text)

    def names(self, name: str) -> frozenset[str]:
        """The value of a flag as passes."""
        return frozenset(self.values.get(name, "").split(","))


def parse_command(argv: Sequence[str]) -> Command:
    """Parse a command line; flags may have one dash or two.

    Raises:
        UsageError: A flag or pass that does not exist, or a second input file.
    """
    command = Command()
    arguments = iter(argv)
    has_source = False
    for argument in arguments:
        if argument == "--":
            sources = list(arguments)
        elif argument == STANDARD_INPUT or not argument.startswith("-"):
            sources = [argument]
        else:
            _read_flag(command, argument, arguments)
            continue
        for source in sources:
            if has_source:
                raise UsageError("reading the command line", got=f"a second input '{source}'", needed="one input")
            command.source, has_source = source, True
    return command


def _read_flag(command: Command, argument: str, arguments: Iterator[str]) -> None:
    name, equals, value = argument.lstrip("-").partition("=")
    if name in _VALUES:
        _set_value(command, name, value if equals else _next(arguments, argument, _VALUES[name][0]))
    elif name == "split-input-file":
        separator = DEFAULT_SEPARATOR if _BOOLEANS.get(value) or not value else value
        _set_or_remove(command, name, None if _BOOLEANS.get(value) is False else separator)
    elif name in _CHOICES:
        _set_choice(command, name, value if equals else _CHOICES[name][0])
    elif name in _FLAGS:
        _set_flag(command, name, value if equals else "true")
    elif name in _IGNORED:
        return
    elif is_pass_or_pipeline(name):
        command.passes += named_passes(name, parse_option_text(value))
    else:
        raise _unknown_flag(argument, name)


def _next(arguments: Iterator[str], flag: str, what: str) -> str:
    """The argument after a flag that needs one."""
    found = next(arguments, None)
    if found is None:
        raise UsageError("reading the command line", got=f"{flag} without a value", needed=f"{flag} {what}")
    return found


def _set_value(command: Command, name: str, value: str) -> None:
    what = _VALUES[name][0]
    if name == "o":
        if not value:
            raise UsageError("reading the flag -o", got="an empty name", needed="a file, or - for standard output")
        command.output = value
    elif name == "pass-pipeline":
        command.passes += parse_pipeline(value)
    else:
        if what == "N":
            whole_number(value, f"reading the flag -{name}", 0, _LARGEST_LIMIT)
        if what == "PASSES":
            for pass_name in value.split(","):
                _check_pass(name, pass_name)
        command.values[name] = value


def _check_pass(flag: str, name: str) -> None:
    if name not in PASSES:
        close = did_you_mean(name, PASSES)
        hint = f"-{flag}={close}" if close else "--show-passes for the list of passes"
        raise UsageError(f"reading the flag -{flag}", got=f"'{name}'", needed="the name of a pass", hint=hint)


def _set_choice(command: Command, name: str, value: str) -> None:
    default, choices, _ = _CHOICES[name]
    if value in _BOOLEANS:
        is_removed = name == "verify-diagnostics" and not _BOOLEANS[value]
        text = default if _BOOLEANS[value] else "false"
        _set_or_remove(command, name, None if is_removed else text)
    elif value in choices:
        command.values[name] = value
    else:
        needed = ", ".join([*choices, "true or false"])
        raise UsageError(f"reading the flag -{name}", got=f"'{value}'", needed=needed)


def _set_or_remove(command: Command, name: str, value: str | None) -> None:
    if value is None:
        command.values.pop(name, None)
    else:
        command.values[name] = value


def _set_flag(command: Command, name: str, value: str) -> None:
    if value not in _BOOLEANS:
        raise UsageError(f"reading the flag -{name}", got=f"'{value}'", needed="true or false")
    if _BOOLEANS[value]:
        command.flags.add(name)
    else:
        command.flags.discard(name)


def _unknown_flag(argument: str, name: str) -> UsageError:
    known = [*_FLAGS, *_CHOICES, *_VALUES, *_IGNORED, "split-input-file", *PASSES, *PIPELINES]
    close = did_you_mean(name, known)
    return UsageError(
        "reading the command line",
        got=f"unknown flag '{argument}'",
        hint=f"-{close}" if close else "--help for the list of passes and flags",
    )


def asks_for_help(argv: Sequence[str]) -> bool:
    """Whether a command line asks for help or for a list."""
    return any(argument in ("-h", "--h", "-help", "--help") for argument in argv)


def help_text() -> str:
    """The text of `--help`."""
    usage = "usage: pyshardy-opt [FILE | -] [-o FILE] [-PASS[='OPTION=VALUE ...'] ...] [FLAG ...]"
    split = f"treat the input as several modules separated by lines that start with SEPARATOR ('{DEFAULT_SEPARATOR}')"
    rows = {f"{name}={what}": text for name, (what, text) in _VALUES.items()}
    rows["split-input-file[=SEPARATOR]"] = split
    for name, (_, choices, text) in _CHOICES.items():
        rows[f"{name}[={'|'.join(choices) or '0|1'}]"] = text
    lines = [usage, "", "flags, with one dash or two:"]
    lines += [f"  -{name:<41} {text}" for name, text in [*rows.items(), *_FLAGS.items()]]
    lines += ["", "flags of MLIR that are accepted and change nothing:"]
    lines += [f"  -{name:<41} {text}" for name, text in _IGNORED.items()]
    lines += ["", "pipelines:", *(f"  -{name}" for name in PIPELINES)]
    lines += ["", "passes, in the order in which a program flows through them:", *(f"  -{name}" for name in PASSES)]
    return "\n".join(lines) + "\n"


def passes_text() -> str:
    """The text of `--show-passes`: every pass with its description."""
    width = max(map(len, [*PASSES, *PIPELINES]))
    lines = ["passes, in the order in which a program flows through them:"]
    lines += [f"  --{name:<{width}}  {_summary(pass_class(name))}" for name in PASSES]
    lines += ["", "pipelines:"]
    lines += [f"  --{name:<{width}}  {len(named_passes(name, {}))} passes" for name in PIPELINES]
    return "\n".join(lines) + "\n"


def _summary(cls: type[Pass]) -> str:
    return (cls.__doc__ or "").partition("\n")[0]
