"""`Plan`: a handful of `PartitionSpec`s for inputs, outputs and intermediate values, and what they would cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from pyshardy.core.files import write_whole
from pyshardy.core.mesh import Mesh
from pyshardy.core.plain_data import from_plain
from pyshardy.core.spec import PartitionSpec
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.frontend.annotate import annotate
from pyshardy.ir.module import Module
from pyshardy.propagation.options import PropagateOptions
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.logical_rules import LogicalRules
from pyshardy.report.page.render import PageFormat
from pyshardy.report.patch import patch
from pyshardy.report.plan import PlanSummary
from pyshardy.report.plan_tables import plan_tables
from pyshardy.report.printing import Printable
from pyshardy.report.rules import PlanRule, code_of
from pyshardy.results.constraining import with_plan_constraints
from pyshardy.results.cost import Cost
from pyshardy.results.partition import Partition, partition_of
from pyshardy.results.propagation import Propagation, finish_propagation
from pyshardy.results.sharded_program import shard

_VERSION = 1
_LOADING = "loading a plan"


@dataclass(frozen=True, repr=False)
class Plan(Printable):
    """Shardings that a search found, with their estimated cost and that of experts' tactics. Nothing is measured.

    `print` shows it as tables. `in_shardings` and `out_shardings` are for `jax.jit`, `patch` is for the source of the
    function, `apply` is for modules, `logical_rules` for models whose arrays name their dimensions.

    Attributes:
        summary: The plan as plain data.
        module: The program of the plan; None for a plan from a file.
        estimator: Estimates the cost of a partitioned program on the hardware of the search; None for a plan from a
            file.
    """

    summary: PlanSummary
    module: Module | None = field(default=None, compare=False)
    estimator: Callable[[Partition], Cost] | None = field(default=None, compare=False)

    @property
    def specs(self) -> dict[str, PartitionSpec]:
        """The shardings by the names of inputs and outputs, as `annotate` takes them."""
        return {spec.name: PartitionSpec(*spec.axes) for spec in self.summary.specs}

    @property
    def mesh(self) -> dict[str, int]:
        """The names and sizes of the mesh axes."""
        return dict(self.summary.mesh)

    @property
    def step_seconds(self) -> float:
        """The estimated time of one step; of the compiler's program, if one was asked."""
        return self.summary.final.seconds

    @property
    def peak_bytes(self) -> int:
        """The estimated peak memory of a device."""
        return int(self.summary.final.bytes)

    @property
    def fits(self) -> bool:
        """Whether the peak memory is within the limit."""
        return self.summary.final.fits

    @property
    def bound(self) -> float:
        """The seconds that no plan for the program on this mesh can be faster than, by the cost model; 0 if unknown.

        It is the time of products and convolutions alone, when all devices share them without waiting.
        """
        return self.summary.bound

    @property
    def is_best(self) -> bool:
        """Whether all shardings of the inputs were tried, and none is better by the cost model."""
        return self.summary.all_tried > 0

    @property
    def candidates(self) -> int:
        """The number of candidates that the search priced."""
        return self.summary.candidates

    @property
    def constraints(self) -> tuple[PlanConstraint, ...]:
        """The shardings of intermediate values, each with `value`, `place`, `spec` and `why`."""
        return self.summary.constraints

    @property
    def annotations(self) -> dict[str, PartitionSpec]:
        """The shardings of inputs and of intermediate values, in the form in which a partitioner returns them."""
        inputs = {spec.name: PartitionSpec(*spec.axes) for spec in self.summary.specs if not spec.is_output}
        return inputs | {one.key: one.spec for one in self.constraints}

    @property
    def rules(self) -> tuple[PlanRule, ...]:
        """The shardings of inputs as a few rules: patterns of names with specs; the first that fits decides.

        A rule is for a parameter, its gradient and its optimizer state, in all layers.
        """
        return self.summary.rules

    def code(self) -> str:
        """Python source with the rules, the mesh, and a function that gives arguments their shardings.

        Paste it beside the function: `shardings(make_mesh(), params=params, batch=batch)` gives the shardings of these
        arguments, by their names, for `jax.jit(in_shardings=...)` or `jax.device_put`.

        Raises:
            UsageError: The inputs have numbers instead of names, as those of `nnx.jit` may have.
        """
        numbered = next((rule.pattern for rule in self.rules if ".." in rule.pattern), None)
        if numbered is not None:
            needed = "inputs with names, such as those of a function that takes trees"
            raise UsageError("writing the rules of a plan as code", got=numbered, needed=needed)
        return code_of(self.rules, self.mesh)

    def logical_rules(self, **names: Any) -> LogicalRules:
        """The plan as logical axis rules, for a model whose arrays name their dimensions.

        The rules give every input with logical axes the sharding of the plan. Where no rules can, as two inputs need
        different mesh axes for one logical axis, they fit most bytes, and `misfits` says which inputs they do not fit.
        `rules.code("linen")` writes them as source; other frameworks are "nnx", "maxtext" and "haliax".

        Args:
            names: By the name of an argument a tree like it with logical axes for arrays: `PartitionSpec`s of logical
                axes, as `nn.get_partition_spec` of linen and of nnx return them, boxes of linen, states of nnx, named
                arrays of haliax, or tuples of names. Arrays without names, and arguments that are left out, get no
                rules.

        Raises:
            UsageError: A tree holds something else, has other names than the inputs, or more names than dimensions.
        """
        from pyshardy.results.logical import logical_rules_of

        return logical_rules_of(self.summary, names)

    def patch(self) -> str:
        """The constraints as a unified diff of the source, for `patch -p1`; "" without any.

        A constraint whose statement is not simple, or whose file cannot be read or has changed, is listed before the
        diff, as "after FILE:LINE: x = jax.lax.with_sharding_constraint(...)". Where a file constrains by specs alone,
        the patched function is to be traced under the mesh: `with jax.set_mesh(mesh)`.
        """
        return patch(self.constraints, self.mesh)

    def apply(self, module: Module | None = None, *, constraints: bool = True) -> Module:
        """A module with the shardings of the plan on its inputs and outputs, in the place of those that it had.

        Args:
            module: The module; by default the program that the plan was made for.
            constraints: Whether intermediate values are constrained too. A module of patched source has these
                constraints already.

        Raises:
            UsageError: No input or output has a name that is in the plan, or no value is made where a constraint is.
        """
        module = self._module() if module is None else module
        mesh = Mesh(list(self.summary.mesh))
        annotated = annotate(module, self.specs, mesh)
        return (
            with_plan_constraints(annotated, self.constraints, mesh) if constraints and self.constraints else annotated
        )

    @cached_property
    def propagated(self) -> Propagation:
        """The program of the plan, propagated with the shardings of the plan on first use."""
        return finish_propagation(*shard(self.apply(), PropagateOptions()))

    @property
    def notes(self) -> tuple[str, ...]:
        """Further remarks; if nothing fits, what would help."""
        return self.summary.notes

    @property
    def in_shardings(self) -> Any:
        """The shardings of all inputs for `jax.jit(in_shardings=...)`, the same as `input_shardings()`."""
        return self.input_shardings()

    @property
    def out_shardings(self) -> Any:
        """The shardings of all outputs for `jax.jit(out_shardings=...)`, the same as `output_shardings()`."""
        return self.output_shardings()

    def input_shardings(self, devices: Any = None) -> Any:
        """The shardings of all inputs on devices, as `Propagation.input_shardings` gives them.

        Args:
            devices: The devices, in the order of the mesh; by default those of the program, or an abstract mesh if its
                mesh has only names and sizes. JAX lowers functions over an abstract mesh, but accepts no arrays there.

        Raises:
            UsageError: There are fewer devices than the mesh has.
        """
        return self.propagated.input_shardings(devices, sub_axes="gather")

    def output_shardings(self, devices: Any = None) -> Any:
        """The shardings of all outputs on devices, like `input_shardings`."""
        return self.propagated.output_shardings(devices, sub_axes="gather")

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON-ready data."""
        return {"version": _VERSION, **asdict(self.summary), "rules": [asdict(rule) for rule in self.rules]}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan to a file; `pyshardy.load_plan` reads it.

        Raises:
            UsageError: The file cannot be written.
        """
        write_whole(path, (json.dumps(self.to_json(), indent=1) + "\n").encode())

    def report(self, path: str | PathLike[str], *, format: PageFormat | str = "html", hints: bool = False) -> None:
        """Write a report of the program with the shardings of the plan, and of what the plan was chosen from.

        The page has the rules, the constraints, a picture of time against memory with the experts' plans, and an
        estimated run of the plan.

        Args:
            path: The file.
            format: A `PageFormat` or its name: "html", "json", ...
            hints: Whether to look for further annotations that make the program send less.

        Raises:
            UsageError: The format is unknown, the plan has no program, or the file cannot be written.
        """
        from pyshardy.results.pages import report_bytes

        part = partition_of(self.apply(), PropagateOptions(compiler="", trace=True))
        cost = None if self.estimator is None else self.estimator(part)
        run = None if cost is None or cost.launches is None else (cost.launches, cost.estimate)
        write_whole(path, report_bytes([part], format, hints=hints, runs=[run], plans=[self.summary]))

    def tables(self) -> Any:
        """The tables that `print` shows, for a `rich` console."""
        return plan_tables(self.summary)

    def __repr__(self) -> str:
        return str(self)

    def _module(self) -> Module:
        if self.module is None:
            raise UsageError(
                "using a plan", got="one from a file, which has no program", needed="plan.for_module(module)"
            )
        return self.module

    def for_module(self, module: Module) -> Plan:
        """The same plan for a program, the result of `load`."""
        return replace(self, module=module)


def load_plan(path: str | PathLike[str]) -> Plan:
    """A plan from a file that `Plan.save` wrote.

    Args:
        path: The file.

    Raises:
        UsageError: The file cannot be read, or holds no plan.
        InvalidShardingError: A sharding in it does not fit its mesh.
    """
    if not isinstance(path, (str, PathLike)):
        raise UsageError(_LOADING, got=named_type(path), needed="a path")
    try:
        data = json.loads(Path(path).read_text())
    except OSError as error:
        raise UsageError(_LOADING, got=f"{path}: {error.strerror}", needed="a file that can be read") from error
    except ValueError as error:
        raise UsageError(_LOADING, got=f"{path}, which is not JSON", needed="a file that Plan.save wrote") from error
    return plan_from_json(data)


def plan_from_json(data: Any) -> Plan:
    """A plan from the data of `Plan.to_json`.

    Raises:
        UsageError: The data is not a plan, or has another version.
        InvalidShardingError: The mesh is none, or a sharding does not fit it.
    """
    if not isinstance(data, Mapping) or data.get("version") != _VERSION:
        raise UsageError(_LOADING, got="other data", needed=f"what Plan.to_json gives, version {_VERSION}")
    given = {name: value for name, value in data.items() if name not in ("version", "rules")}
    summary: PlanSummary = from_plain(PlanSummary, given, _LOADING, "the plan")
    mesh = Mesh(summary.mesh)
    shardings = [(group.axes, group.shape) for group in summary.specs]
    shardings += [(constraint.axes, constraint.shape) for constraint in summary.constraints]
    for axes, shape in shardings:
        PartitionSpec(*axes).sharding(mesh, len(shape))  # raises an error if they do not fit
    return Plan(summary)
