"""What is tried: a mutant with the commands that it goes through, or a program whose numbers are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from .mutate import mutated_bytecode, mutated_text

KINDS = ("text", "bytecode", "program")
FILES = {"text": "in.mlir", "bytecode": "in.mlirbc"}
OUTPUT = "out.mlir"
FAMILIES = ("annotated", "called", "chain", "composed", "indexed", "odd", "op", "typed")
_PASSES = (
    "-sdy-propagation-pipeline",
    "-sdy-export-pipeline",
    "-sdy-export-pipeline=enable-insert-explicit-collectives=true",
    "-pyshardy-xla-view-pipeline",
    "-sdy-import-pipeline",
    "-sdy-propagation-pipeline -sdy-close-shardings -sdy-insert-explicit-reshards=enable-full-version=true"
    " -sdy-reshard-to-collectives",
    "-pyshardy-shard-pointwise -canonicalize",
    "-sdy-basic-propagate=debug-sharding-origins=true",
)
_LOOKS = (
    ("explain", "--view=stablehlo"),
    ("explain", "--collectives", "--details"),
    ("explain", "--collectives", "--json"),
    ("cost",),
    ("cost", "--view=stablehlo", "--json"),
    ("cost", "--collectives=measured"),
    ("diff", FILES["text"], "--view=stablehlo"),
    ("report", "-o", "-"),
    ("report", "-o", "-", "--format=json", "--no-hints", "--view=stablehlo"),
    ("report", "-o", "-", "--format=model-explorer"),
    ("search", "--collectives=measured", "--quiet"),
    ("search", "--budget=3", "--json"),
)
"""What only looks at a program; `diff` compares it with itself."""
_LOOKED_AT = 0.25
_RUNS = 0.12
"""How often a program runs too: that takes longer than all else."""
_ISOLATED = 0.04


@dataclass(frozen=True)
class Case:
    """One thing to try.

    Attributes:
        kind: One of `KINDS`.
        seed: What it is made from.
        is_isolated: Whether mutants are read in a process of their own.
    """

    kind: str
    seed: int
    is_isolated: bool = False

    @property
    def name(self) -> str:
        """Its kind and seed in a word."""
        return f"{self.kind}-{self.seed}" + ("-isolated" if self.is_isolated else "")


@dataclass(frozen=True)
class Mutant:
    """A mutant and what becomes of it.

    Attributes:
        origin: The program that it comes from.
        content: Its bytes.
        commands: The command lines that it goes through; the first tells whether it can be read at all.
        is_compared: Whether propagation is done once more, of its bytecode, and in a process of its own.
    """

    origin: str
    content: bytes
    commands: list[list[str]] = field(default_factory=list)
    is_compared: bool = False


def mutant_of(case: Case) -> Mutant:
    """The mutant of a case."""
    random = Random(f"commands {case.kind} {case.seed}")
    if case.kind == "text":
        original, content = mutated_text(case.seed)
        origin, flags = original.name, list(original.flags)
    else:
        (origin, content), flags = mutated_bytecode(case.seed), []
    read, write = [FILES[case.kind]], [FILES[case.kind], "-o", OUTPUT]
    allow = random.random() < 0.3
    view = random.choice(([], ["--view=stablehlo"]))
    commands = [
        ["propagate", *write, "--no-locations", *view],
        ["opt", *write, *(flags or random.choice(_PASSES).split())],
    ]
    commands += [
        ["partition", *write, *view, *_some(random, "--mesh-axes-groups", "--no-replicate-unsupported", "--json")]
    ]
    if random.random() < 0.5:
        commands += [["opt", *write, *random.choice(_PASSES).split(), *_some(random, "-emit-bytecode", "-verify-each")]]
        commands += [["show", *read, *_some(random, "--json", "--conservative", "--no-op-priorities")]]
    if random.random() < _RUNS:
        commands += [["run", *read, *view, *_some(random, "--json")]]
    looks = Random(f"looks {case.kind} {case.seed}")
    if looks.random() < _LOOKED_AT:
        name, *options = looks.choice(_LOOKS)
        commands += [[name, *read, *(option.replace(FILES["text"], *read) for option in options)]]
    for command in commands:
        command += ["-allow-unregistered-dialect" if command[0] == "opt" else "--allow-unregistered-dialect"] * allow
        command += ["--isolate"] * case.is_isolated
    return Mutant(origin, content, commands[:2] if case.is_isolated else commands, random.random() < _ISOLATED)


def _some(random: Random, *flags: str) -> list[str]:
    return [flag for flag in flags if random.random() < 0.3]


def program_of(case: Case) -> tuple[str, int]:
    """The family and the seed of a program."""
    return FAMILIES[case.seed % len(FAMILIES)], case.seed // len(FAMILIES)


def program_text(case: Case) -> str:
    """The program of a case, whose numbers are compared."""
    from end_to_end.number_programs import FAMILIES

    family, seed = program_of(case)
    return FAMILIES[family](seed)
