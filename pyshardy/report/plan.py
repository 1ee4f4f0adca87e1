"""A plan of shardings as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten

from pyshardy.core.text import format_bytes
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.nearest import NearestExpert
from pyshardy.report.reasons import PlanReason
from pyshardy.report.rules import NamedSpec, PlanRule, rules_of

FAR = 2
"""From this factor of the estimated bytes on, the compiler's program is said to differ."""
THE_PLAN = "the plan"
_MOST_LETTERS = 200
"""The number of letters of what a compiler says that is printed; a plan as data has all of it."""


@dataclass(frozen=True, slots=True)
class PlanSpec:
    """The sharding of a group of inputs or outputs.

    Attributes:
        name: The name of the group; `[*]` stands for every layer.
        shape: The shape of each tensor.
        element: The element type in MLIR's notation.
        axes: The mesh axes of each dimension, major to minor.
        count: The number of tensors in the group.
        is_output: Whether the tensors are outputs.
    """

    name: str
    shape: tuple[int, ...]
    element: str
    axes: tuple[tuple[str, ...], ...]
    count: int
    is_output: bool = False


@dataclass(frozen=True, slots=True)
class PlanRow:
    """The estimated cost of one way to shard the program.

    Attributes:
        name: The tactic or the change, in words.
        seconds: Estimated time of a step.
        bytes: Estimated peak memory of a device.
        fits: Whether the peak is within the limit.
        is_exact: Whether the figures are those of `pyshardy.cost`; otherwise they are quicker estimates of the search.
        unpriced: The names of ops without a price, which the time leaves out, and how often they run.
        sent_bytes: The bytes that every device sends; 0 if the program was not partitioned.
        communication_seconds: Estimated time of all collectives, hidden or not.
        devices: The number of devices, in a table of plans for several numbers of them; else 0.
    """

    name: str
    seconds: float
    bytes: float
    fits: bool
    is_exact: bool
    unpriced: tuple[tuple[str, int], ...] = ()
    sent_bytes: int = 0
    communication_seconds: float = 0.0
    devices: int = 0


@dataclass(frozen=True, slots=True)
class CompiledRow:
    """The estimated cost of the program that a compiler makes of one way to shard it.

    Attributes:
        name: The way in words.
        seconds: Estimated time of a step of the compiler's program; 0 if it refused.
        bytes: Estimated peak memory of a device; 0 if it refused.
        fits: Whether the peak is within the limit.
        sent_bytes: The bytes that every device sends in the compiler's program.
        estimated_seconds: Estimated time of a step as pyshardy partitions the program.
        estimated_sent_bytes: The bytes that every device sends then.
        replicated_bytes: The bytes of the tensors that the compiler gathers whole on every device.
        refusal: What the compiler said if it refused to partition the program; else empty.
        communication_seconds: Estimated time of all collectives of the compiler's program, hidden or not.
        needed_bytes: The peak memory that the program needs, compiled to the end; `fits` goes by it then. None if that
            was not done, and 0 if the compiler only says that the program does not fit.
    """

    name: str
    seconds: float
    bytes: float
    fits: bool
    sent_bytes: int
    estimated_seconds: float
    estimated_sent_bytes: int
    replicated_bytes: int = 0
    refusal: str = ""
    communication_seconds: float = 0.0
    needed_bytes: int | None = None

    @property
    def is_far(self) -> bool:
        """Whether the compiler's program sends more than twice what was estimated."""
        return self.sent_bytes > FAR * self.estimated_sent_bytes

    @property
    def words(self) -> str:
        """How the compiler's program differs from the estimated one; empty if it is close.

        >>> CompiledRow("the plan", 1.0, 1.0, True, 3000, 1.0, 1000, 64).words
        'sends 3.0 times what was estimated; 64 B of tensors are gathered whole on every device'
        >>> len(CompiledRow("the plan", 0.0, 0.0, False, 0, 1.0, 0, refusal=80 * "unknown op ").words) < 250
        True
        """
        if self.refusal:
            return f"the compiler refuses it: {shorten(self.refusal, _MOST_LETTERS, placeholder=' ...')}"
        said = []
        if self.is_far:
            times = self.sent_bytes / self.estimated_sent_bytes if self.estimated_sent_bytes else 0.0
            said.append(f"sends {times:.1f} times what was estimated" if times else "was estimated to send nothing")
        if self.replicated_bytes:
            said.append(f"{format_bytes(self.replicated_bytes)} of tensors are gathered whole on every device")
        if self.needed_bytes is not None:
            needed = f"needs {format_bytes(self.needed_bytes)}" if self.needed_bytes else "needs more than there is"
            said.append(f"{needed} compiled to the end, which {'fits' if self.fits else 'does NOT fit'}")
        return "; ".join(said)


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan as plain data.

    Attributes:
        hardware: The name of the chip.
        mesh: The name and size of every mesh axis.
        collectives: The model that priced collectives.
        limit: The bytes that a device may use.
        specs: The shardings.
        chosen: The cost of the plan.
        rows: The cost of other ways: the program as it was given, and experts' tactics.
        front: Other candidates; each is the fastest that needs at most its memory.
        reasons: For every rule, what the best other sharding costs, and which collectives the rule makes.
        candidates: The number of candidates that the search priced.
        exact: The number of candidates that got an exact estimate.
        seconds: How long the search took.
        seed: The seed of random choices.
        ended_by: "nothing better", "time", "candidates" or "interruption".
        notes: What else there is to know.
        constraints: The shardings of intermediate values.
        bound: The seconds that no plan for the program on this mesh can be faster than, by the cost model; 0 if none.
        all_tried: The number of all shardings of inputs, if all were tried and none is better; else 0.
        compiler: The compiler that the best plans were confirmed with; empty if none was asked.
        compiled: The cost of the programs that it makes of the best plans and of the given program, the best first.
        nearest: The plan of experts that is nearest to this one, and what is changed; empty if none was priced.
        goal: What the plan was chosen by: "time", "memory" or "chip-seconds".
        way: The version of the program that the plan is for, such as "mesh data=8" or "4 micro-batches"; empty if there
            was one.
        ways: The cost of every version, the best first; of those that were not searched, that of their best tactic.
    """

    hardware: str
    mesh: tuple[tuple[str, int], ...]
    collectives: str
    limit: float
    specs: tuple[PlanSpec, ...]
    chosen: PlanRow
    rows: tuple[PlanRow, ...]
    front: tuple[PlanRow, ...]
    reasons: tuple[PlanReason, ...]
    candidates: int
    exact: int
    seconds: float
    seed: int
    ended_by: str
    notes: tuple[str, ...]
    constraints: tuple[PlanConstraint, ...] = ()
    bound: float = 0.0
    all_tried: int = 0
    compiler: str = ""
    compiled: tuple[CompiledRow, ...] = ()
    nearest: tuple[NearestExpert, ...] = ()
    goal: str = "time"
    way: str = ""
    ways: tuple[PlanRow, ...] = ()

    @property
    def rules(self) -> tuple[PlanRule, ...]:
        """The shardings of inputs as rules: patterns of names, the first of which decides."""
        return rules_of(NamedSpec(one.name, one.axes, one.count, one.shape) for one in self.specs if not one.is_output)

    @property
    def final(self) -> PlanRow | CompiledRow:
        """The cost of the plan: that of the compiler's program, if one was asked and did not refuse it."""
        found = (row for row in self.compiled if row.name == THE_PLAN and not row.refusal)
        return next(found, self.chosen)
