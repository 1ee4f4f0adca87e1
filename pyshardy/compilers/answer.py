"""What a compiler says of a program: what it passed to Shardy, what Shardy decided, and the partitioned program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyshardy.compilers.target import CompilerTarget

_WARNING = re.compile(
    r"Involuntary full rematerialization\. The compiler cannot go from sharding (\{.*?\}) to (\{.*?\}) efficiently "
    r"for HLO operation %(\S+) = ([\w]+\[[\d,]*\])(.*)"
)
_METADATA = re.compile(r'metadata=\{[^}]*?op_name="((?:[^"\\]|\\.)*)"(?:[^}]*? stack_frame_id=(\d+))?')


@dataclass(frozen=True, slots=True)
class Rematerialization:
    """A tensor that a compiler replicates, as it cannot go from one sharding to another step by step.

    Attributes:
        before: The sharding that the tensor has, in HLO's notation.
        after: The sharding that it gets.
        instruction: The HLO instruction that makes it.
        type: The element type and the shape of a shard before, such as "f32[32,64,16]".
        scope: The name of the op, such as "jit(step)/mul"; None if unknown.
        frame: The number of its stack frame in the partitioned module; None if unknown.
    """

    before: str
    after: str
    instruction: str
    type: str
    scope: str | None
    frame: int | None


@dataclass(frozen=True, slots=True)
class CompilerAnswer:
    """The answer of a compiler.

    Attributes:
        target: The devices that it compiled for.
        label: Its name and version, such as "libtpu 0.0.52".
        given: The module that it passed to Shardy, as a serialized `HloProto`.
        decided: The module after Shardy's propagation, as text.
        partitioned: The partitioned module, as a serialized `HloProto`; None if it did not come so far.
        log: What it wrote to standard error.
        error: Why it stopped; None if it did not have to.
        memory: The bytes per device by kind, of a program that is compiled to the end.
        seconds: The time of the compilation; of one to the end.
        compiled: The text of the compiled module, of a program that is compiled to the end.
    """

    target: CompilerTarget
    label: str
    given: bytes
    decided: str
    partitioned: bytes | None
    log: str
    error: str | None = None
    memory: Mapping[str, int] | None = None
    seconds: float | None = None
    compiled: str | None = None

    def __str__(self) -> str:
        """Who speaks."""
        return f"{self.label} for {self.target}"

    @property
    def rematerializations(self) -> tuple[Rematerialization, ...]:
        """The tensors that the compiler replicated, as its warnings say."""
        return rematerializations_in(self.log)


def rematerializations_in(log: str) -> tuple[Rematerialization, ...]:
    """The involuntary full rematerializations that a compiler warned of; each instruction once.

    >>> found = rematerializations_in(
    ...     "W1126 [SPMD] Involuntary full rematerialization. The compiler cannot go from sharding "
    ...     "{devices=[2,1,4]<=[8]} to {devices=[1,8,1]<=[8]} efficiently for HLO operation "
    ...     '%mul.0 = f32[32,64,16]{2,1,0} multiply(%p, %p), metadata={op_name="jit(f)/mul" stack_frame_id=8}. As the'
    ... )
    >>> [(one.instruction, one.type, one.scope, one.frame) for one in found]
    [('mul.0', 'f32[32,64,16]', 'jit(f)/mul', 8)]
    """
    found = {}
    for line in log.splitlines():
        match = _WARNING.search(line)
        if match is None:
            continue
        before, after, instruction, type, rest = match.groups()
        scope, frame = metadata.groups() if (metadata := _METADATA.search(rest)) is not None else (None, None)
        found[before, after, instruction] = Rematerialization(
            before, after, instruction, type, scope, None if frame is None else int(frame)
        )
    return tuple(found.values())
