"""The public function that finds what costs most in a program, and what mends it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from pyshardy.api.arguments import propagation_options
from pyshardy.api.cost import cost
from pyshardy.api.load import load
from pyshardy.api.partition import partition
from pyshardy.api.propagate import propagate
from pyshardy.checkup.choosing import Tried, best_of, is_cause, merged
from pyshardy.checkup.cures import LEAST_GAIN, SAME, Cure, avoided, gain
from pyshardy.checkup.kinds.batches import batch_cures
from pyshardy.checkup.kinds.code import (
    batch_constraint_cures,
    constraint_cures,
    kernel_cures,
    micro_batch_cures,
    other_cures,
    wider_cures,
)
from pyshardy.checkup.kinds.handed_on import donation_cures, output_cures
from pyshardy.checkup.kinds.ignored import ignored_cures
from pyshardy.checkup.kinds.linked import linked_cures
from pyshardy.checkup.kinds.manual_axes import manual_cures
from pyshardy.checkup.kinds.merged import lookup_cures, merge_cures
from pyshardy.checkup.kinds.odd_ones import odd_cures
from pyshardy.checkup.kinds.padding import padding_cures
from pyshardy.checkup.kinds.ports import conflict_cures
from pyshardy.checkup.kinds.rules import rule_cures
from pyshardy.checkup.kinds.signs import signs, uneven_parts
from pyshardy.checkup.kinds.state import state_cures
from pyshardy.checkup.kinds.twins import twin_cures
from pyshardy.checkup.kinds.values import value_cures
from pyshardy.checkup.pricing import Pricer
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.hardware import Hardware
from pyshardy.costing.topology import make_topology
from pyshardy.errors import ShardyError, UsageError
from pyshardy.ir.module import Module
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.report.diagnosis import Diagnosis, Figures, Finding, FindingKind
from pyshardy.results.cost import Cost, chip_of_partition, collective_model
from pyshardy.results.hints.remedies import Remedy
from pyshardy.results.partition import Partition
from pyshardy.results.verbs import Result
from pyshardy.searching.planning.options import sayer

_DOING = "looking for what costs most"
MOST_FINDINGS = 3
MOST_TRIES, _USUAL_TRIES, _LEAST_TRIES = 100, 50, 12
_MOST_OPS, _FEW_OPS = 600_000, 50_000
"""The ops of all programs that are priced, about a minute: a program that stays large has fewer tries. A small one has
more, which take some seconds."""
_AGAIN = 6
"""The number of cures that are tried again beside those that are chosen."""
_FOR_ONE_COMPILATION = 0.05
"""The share of a step that avoiding a second compilation may cost, which an estimate of one step does not show."""
_UNSURE = 0.03
"""The share of a step by which the price of a few layers may err; the whole program is priced before it is shown."""
_FREE = (
    FindingKind.RULE, FindingKind.CONSTRAINT, FindingKind.DONATION, FindingKind.STATE, FindingKind.UNEVEN,
    FindingKind.OTHER_OUTPUT,
)  # fmt: skip
"""What mends memory that is held for nothing."""


def doctor(
    program: Any,
    *example_args: Any,
    hardware: Hardware | str | Path | None = None,
    compiler: str | None = None,
    networks: Mapping[str, str] | None = None,
    shape: Sequence[int] | None = None,
    collectives: CollectiveModel | str = CollectiveModel.FORMULA,
    tries: int | None = None,
    progress: bool | Callable[[str], None] = False,
    **keywords: Any,
) -> Diagnosis:
    """Find what makes a program slower or larger than it need be: at most three findings, each with what mends it.

    Each cure is tried: the program is partitioned and priced with it. A finding saves at least 1% of the time or the
    memory of a step, or a second compilation. Of faults, the one that saves most comes first, then what saves most
    beside it; another design comes behind.

    Args:
        program: A result of `load`, `propagate` or `partition`, or anything that `load` takes.
        example_args: For a function, its arguments, as for `load`.
        hardware: The chip, as for `cost`.
        compiler: The compiler whose program is judged, as for `propagate`. Cures are chosen with pyshardy's own
            partitioner, and kept if they pay in the compiler's program too. By default the compiler that the program
            was propagated with.
        networks: The networks of mesh axes, as for `cost`.
        shape: The dimensions of the torus, as for `cost`.
        collectives: The model of collectives, as for `cost`.
        tries: The most cures to price. By default at most 50; fewer for a program that stays large with a few of its
            equal layers, and up to 100 for a small one.
        progress: Whether to say on standard error what is tried; or a function that takes this text.
        keywords: For a function, as for `load`.

    Raises:
        UsageError: The program has no mesh with several devices; a chip, network or model is unknown.
        ShardyError: The program cannot be partitioned.

    >>> found = doctor('''
    ... sdy.mesh @mesh = <["x"=8]>
    ... func.func @main(%a: tensor<8192x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    ...                 %b: tensor<4096x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    ...     -> tensor<8192x4096xbf16> {
    ...   %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    ...     : (tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16>
    ...   return %0 : tensor<8192x4096xbf16>
    ... }''', hardware="h100")
    >>> found.findings[0].kind.value, found.findings[0].cure
    ('conflict', 'annotate `arg0` as P()')
    """
    if tries is not None and (not isinstance(tries, int) or isinstance(tries, bool) or tries < 1):
        raise UsageError(_DOING, got=f"tries={tries!r}", needed="a number from 1")
    if isinstance(program, Result):
        module = program.before
        compiler = program.propagate_options.compiler if compiler is None else compiler
    else:
        module = load(program, *example_args, **keywords)
    say = sayer(progress)
    judge = _Judge(compiler or "none", hardware, networks, shape, collective_model(collectives))
    return _Checkup(judge.cost_of_given(module, program), judge, tries, say).run()


class _Judge(NamedTuple):
    """What gives the figures that are shown: the estimate of the whole program, or of the compiler's."""

    compiler: str
    hardware: Hardware | str | Path | None
    networks: Mapping[str, str] | None
    shape: Sequence[int] | None
    model: CollectiveModel

    def cost(self, module: Module) -> Cost:
        """The estimate of the whole program."""
        return self._cost(partition(propagate(module, compiler=self.compiler)))

    def cost_of_given(self, module: Module, program: Any) -> Cost:
        """The same; a program that is partitioned already, with the options used here, is not partitioned again."""
        if isinstance(program, Partition) and program.options == PartitionOptions():
            given = program.propagate_options
            usual = propagation_options(None, {"compiler": self.compiler}, _DOING)
            if replace(given, trace=False, compiler=given.compiler or "") == usual:
                return self._cost(program)
        return self.cost(module)

    def _cost(self, part: Partition) -> Cost:
        return cost(part, self.hardware, networks=self.networks, shape=self.shape, collectives=self.model)


def _figures(found: Cost) -> Figures:
    return Figures(found.step_seconds, found.peak_bytes)


class _Checkup:
    """One look at one program."""

    def __init__(self, found: Cost, judge: _Judge, tries: int | None, say: Callable[[str], None]) -> None:
        self.judge, self.say = judge, say
        self.found = found
        mesh = next(((name, one) for name, one in self.found.partition.meshes.items() if one.axes), None)
        if mesh is None or self.found.partition.device_count < 2:
            raise UsageError(
                _DOING, got="a program for one device", needed="a mesh with several devices", hint="mesh=..."
            )
        self.mesh_name, self.mesh = mesh
        estimate = self.found.estimate
        chip = find_hardware(chip_of_partition(self.found.partition) if judge.hardware is None else judge.hardware)
        self.pricer = Pricer(make_topology(chip, self.mesh.axes, judge.networks, judge.shape), judge.model)
        self.limit = estimate.memory_limit_bytes
        self.most = self._usual_tries() if tries is None else tries

    def _usual_tries(self) -> int:
        ops = self.pricer.ops(self.found.partition.before)
        usual = max(_LEAST_TRIES, min(_USUAL_TRIES, _MOST_OPS // ops))
        return max(usual, min(MOST_TRIES, _FEW_OPS // ops))

    def run(self) -> Diagnosis:
        """The findings."""
        with closing(self.pricer):
            return self._run()

    def _run(self) -> Diagnosis:
        first = self.found
        found = list(uneven_parts(first, _figures(first), self.mesh))
        findings = self._findings()
        found += signs(self.found, _figures(self.found), self.mesh)
        untried = sorted(found, key=lambda pair: -pair[0])
        findings = merged(findings, untried, self.limit)[:MOST_FINDINGS]
        estimate = first.estimate
        return Diagnosis(
            tuple(findings), _figures(first), self.limit, estimate.devices, estimate.hardware, self.pricer.tries,
            first.speaker,
        )  # fmt: skip

    def _findings(self) -> list[Finding]:
        """The cures that pay, the best first, each tried beside those before it; `found` is then the cured program."""
        findings: list[Finding] = []
        for remedy in islice(self._remedies(), 1):
            now, after = _figures(self.found), self.judge.cost(remedy.module)
            if gain(now, _figures(after), self.limit) >= LEAST_GAIN:
                self.found = after
                findings.append(_replication(remedy, now, _figures(after)))
        priced = self.pricer.price(self.found.partition.before)
        paying = [] if priced is None else self._paying(priced, islice(_distinct(self._cures()), self.most))
        while paying and len(findings) < MOST_FINDINGS:
            best, now = best_of(paying), _figures(self.found)
            found = best.found
            if found is None:  # so far a few of its layers were priced
                paying = self._reordered(paying, best, now)
                continue
            others = [
                one.cure
                for one in paying
                if one.cure.key != best.cure.key and one.cure.inputs.isdisjoint(best.cure.inputs)
            ]
            cure = best.cure
            cause = next((one.cure for one in paying if is_cause(one, best)), None)
            if cause is not None:
                cure = replace(cure, why=f"{cause.what}; {cause.why}")
            elif cure.kind is FindingKind.LAYOUT:
                cure = replace(cure, why=_joined(cure.why, avoided(self.found.partition, found.partition)))
            self.found = found
            findings.append(cure.finding(now, _figures(found)))
            others = [one for one in others if one.kind is not FindingKind.OTHER_OUTPUT][:_AGAIN]
            paying = self._paying(best.figures, [*others, *self._output_cures()])
        return findings

    def _reordered(self, paying: Sequence[Tried], one: Tried, now: Figures) -> list[Tried]:
        """Cures of which one, and those that do the same, are worth what they are in the whole program.

        Those that do not pay there are left out.
        """
        found = self._judged(one.cure.apply(self.found.partition.before))
        after = None if found is None else _figures(found)
        alike = [one, *(other for other in paying if other.figures == one.figures and other is not one)]
        worths = [None if after is None else self._worth(other.cure, now, after) for other in alike]
        again = [other._replace(worth=worth) for other, worth in zip(alike, worths) if worth is not None]
        if again and again[0].cure is one.cure:
            again[0] = again[0]._replace(found=found)
        rest = [other for other in paying if other.figures != one.figures]
        return sorted([*again, *rest], key=lambda other: -other.worth)

    def _judged(self, module: Module) -> Cost | None:
        try:
            return self.judge.cost(module)
        except ShardyError:
            return None

    def _output_cures(self) -> Iterator[Cure]:
        """Made anew for each program, as they say how its inputs are sharded."""
        return output_cures(self.found.partition.before, self.found.partition.propagated)

    def _remedies(self) -> Iterable[Remedy]:
        """What avoids the tensors that the compiler gathers whole."""
        part = self.found.partition
        if part.replications:
            self.say(f"{len(part.replications)} tensors are gathered whole: asking the compiler for what helps")
        return part.remedies()

    def _cures(self) -> Iterator[Cure]:
        """All cures, one of each kind in turn: a large program has more of each than are tried."""
        own = self.found.partition
        if own.answer is not None:
            own = partition(propagate(own.before, compiler="none"))
        wider = list(wider_cures(own.propagated))
        dropping = {cure.place[:2] for cure in wider if cure.place is not None}
        turns = zip_longest(
            ignored_cures(own.before, self.mesh),
            rule_cures(own.before, self.mesh_name, self.mesh, dropping),
            twin_cures(own.before),
            linked_cures(own.before, self.mesh_name, self.mesh, partial(self.pricer.input_shardings, own.before)),
            donation_cures(own.before),
            self._output_cures(),
            micro_batch_cures(own),
            merge_cures(own),
            lookup_cures(own),
            manual_cures(own.before, self.mesh),
            iter(wider),
            batch_constraint_cures(own.propagated),
            odd_cures(own.before, self.mesh),
            padding_cures(own.before, self.mesh_name, self.mesh),
            value_cures(own.propagated, self.mesh),
            constraint_cures(own.before),
            other_cures(own.propagated),
            kernel_cures(own, self.mesh_name, self.mesh),
            conflict_cures(own, self.mesh_name, self.mesh),
            batch_cures(own.before, self.mesh_name, self.mesh),
            state_cures(own.before, self.mesh_name, self.mesh),
        )
        return (cure for turn in turns for cure in turn if cure is not None)

    def _paying(self, now: Figures, cures: Iterable[Cure]) -> list[Tried]:
        """The cures that pay in the program, the best of a fault and the best design for each place, the best first."""
        module = self.found.partition.before
        found: dict[Hashable, list[Tried]] = {}
        for number, (cure, figures) in enumerate(self.pricer.prices(module, self._told(cures))):
            worth = None if figures is None else self._worth(cure, now, figures, _UNSURE)
            if figures is not None and worth is not None:
                found.setdefault((cure.key, cure.is_design), []).append(Tried(worth, cure, figures, number=number))
        best = [best_of(sorted(alike, key=lambda one: -one.worth)) for alike in found.values()]
        return sorted(best, key=lambda one: -one.worth)

    def _told(self, cures: Iterable[Cure]) -> Iterator[Cure]:
        """The same cures; each is told when it is tried."""
        for number, cure in enumerate(cures, 1):
            self.say(f"trying {number}: {cure.text}")
            yield cure

    def _worth(self, cure: Cure, before: Figures, after: Figures, unsure: float = SAME) -> float | None:
        """How much a cure is worth; None if it does not pay."""
        worth = gain(before, after, self.limit, cure.kind in _FREE and cure.frees, unsure)
        if cure.kind is FindingKind.OTHER_OUTPUT and worth > -_FOR_ONE_COMPILATION:
            return LEAST_GAIN + max(worth, 0.0)
        return worth if worth >= LEAST_GAIN else None


def _distinct(cures: Iterable[Cure]) -> Iterator[Cure]:
    """Of the cures that say to do the same the first, and those after it that count for more."""
    weights: dict[Hashable, tuple[bool, bool]] = {}
    for cure in cures:
        key, weight = (cure.text, cure.inputs), (not cure.is_design, cure.kind in _FREE)
        if key not in weights or any(now and not was for now, was in zip(weight, weights[key])):
            weights[key] = weight
            yield cure


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _replication(remedy: Remedy, now: Figures, after: Figures) -> Finding:
    return Finding(
        FindingKind.REPLICATION, str(remedy.replication), "", remedy.replication.place, remedy.what_helps, now, after
    )
