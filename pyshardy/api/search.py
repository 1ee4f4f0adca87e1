"""Search for the shardings of a program that make it fast on hardware that need not be there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from pyshardy.api.load import load
from pyshardy.compilers.target import chip_of, compiler_name, with_chip
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.hardware import Hardware
from pyshardy.errors import UsageError
from pyshardy.frontend.annotate import core_mesh, with_mesh
from pyshardy.ir.module import Module
from pyshardy.results.cost import collective_model
from pyshardy.results.plan import Plan
from pyshardy.searching.autopartition.objective import Goal, Objective
from pyshardy.searching.autopartition.registry import Partitioner, partitioner_in_use
from pyshardy.searching.planning.forbidding import Forbidden, check_number
from pyshardy.searching.planning.meshes import meshes_of, richest_first
from pyshardy.searching.planning.options import MOST_CANDIDATES, Keep, SearchOptions, sayer
from pyshardy.searching.planning.search import Search
from pyshardy.searching.planning.ways import TriedWay, best_of
from pyshardy.searching.program.search_program import DOING


def search(
    program: Any,
    *example_args: Any,
    mesh: Any = None,
    devices: int | Sequence[int] | None = None,
    hardware: Hardware | str | Path | None = None,
    memory: float | None = None,
    budget_s: float = 60.0,
    seed: int = 0,
    keep: Keep = True,
    networks: Mapping[str, str] | None = None,
    shape: Sequence[int] | None = None,
    collectives: CollectiveModel | str = CollectiveModel.FORMULA,
    candidates: int = MOST_CANDIDATES,
    constraints: bool = True,
    progress: bool | Callable[[str], None] = False,
    partitioner: Partitioner | None = None,
    compiler: str | None = None,
    forbid: Mapping[str, str | Sequence[str]] | None = None,
    whole_below: float = 0,
    axes_at_most: int | None = None,
    goal: str = "time",
    remat: str | Sequence[str] = (),
    microbatches: int | Sequence[int] = (),
    **keywords: Any,
) -> Plan:
    """Find shardings for the inputs and for intermediate values of a program, by estimates, without the hardware.

    Args:
        program: A result of `load`, or anything that `load` takes.
        example_args: For a function, its arguments, as for `load`.
        mesh: Axes with sizes, or a mesh; by default that of the program.
        devices: The number of devices, instead of a mesh. The search then chooses a mesh with the axis "data", with
            "data" and "model", or, where the devices are on several nodes or slices, with "data" from one to the next
            and "fsdp" and "model" within. `plan.notes` says which axes lie on which network. Of several numbers the
            search chooses one, too: by `goal`.
        hardware: The chip, as for `cost`; by default that of the compiler, or else v5p.
        memory: The bytes that a device may use; by default the memory of the chip.
        budget_s: The seconds that the search may take after the program is loaded.
        seed: The seed of random choices. The same seed gives the same plan, unless the search runs out of time.
        keep: Whether inputs and outputs keep the shardings that they have; or the names of those that do; or the
            shardings to keep, by name, such as `{"x": PartitionSpec("data")}`: these replace all others. Constraints of
            values in the program always stay.
        networks: The networks of mesh axes, as for `cost`.
        shape: The dimensions of the torus, as for `cost`.
        collectives: The cost model of collectives, as for `cost`.
        candidates: The most shardings of inputs to price; two fifths more for constraints.
        constraints: Whether to constrain intermediate values where this makes the plan better.
        progress: Whether to print the best candidate so far on standard error; or a function that takes this text.
        partitioner: A function that finds the shardings instead of the built-in search, as for `register_partitioner`.
        compiler: The compiler that is asked about the best plans, such as "tpu:v5e:2x4" or "cuda:h100": it partitions
            the best plans, and the cheapest of these programs that fits, compiled to the end, is the plan. That takes a
            second or so for each of seven programs, and up to three minutes for the plan, after the budget. By default,
            or with "none", no compiler is asked.
        forbid: The mesh axes that inputs may not have, by name, such as `{"params": "data", "tokens": "*"}`: "params"
            stands for everything in it, "*" for all axes. So an axis is reserved for the batch.
        whole_below: Inputs of fewer bytes stay whole, such as scales of norms.
        axes_at_most: The most mesh axes that an input, or a value that the search constrains, is split along; by
            default any number. Outputs that replace inputs follow these, others what propagation makes of them.
        goal: What a plan that fits is chosen by. "time": the time of a step; memory decides between plans of about
            equal time, as the memory of a whole device is worth 1 % of the time, and its last tenth 5 % more. "memory":
            the peak memory of a device, so that the batch can grow. "chip-seconds": of several numbers of devices, the
            one with the most tokens, or rows, per second and chip; on one mesh the time of a step.
        remat: For a function that trains: policies of `jax.checkpoint_policies` to try, such as "nothing_saveable" and
            "dots_saveable". They replace those of its calls of `jax.checkpoint`; without any, the bodies of its scans
            are checkpointed. The plan is for the best way, `plan.summary.way`, and its notes say how to write it.
        microbatches: Numbers of parts of the batch to try, whose gradients are added. The loss takes the batch as an
            argument of `jax.grad` or `jax.value_and_grad`.
        keywords: For a function, as for `load`.

    Raises:
        UsageError: The program has no mesh, or several; it cannot train in another way; the chip or the goal is
            unknown; the budget or the memory is not a positive number; the partitioner is not a function; the compiler
            is unknown, not installed, or for other devices.
        ShardyError: The program cannot be propagated.

    >>> plan = search('''
    ... sdy.mesh @mesh = <["x"=8]>
    ... func.func @main(%a: tensor<8192x4096xbf16>, %b: tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16> {
    ...   %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    ...     : (tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16>
    ...   return %0 : tensor<8192x4096xbf16>
    ... }''', hardware="h100")
    >>> plan.fits, sorted(plan.specs)
    (True, ['arg0', 'arg1'])
    """
    check_number("budget_s", budget_s, "seconds, more than 0")
    if memory is not None:
        check_number("memory", memory, "bytes, more than 0")
    forbidden = Forbidden({} if forbid is None else forbid, whole_below, axes_at_most)
    if devices is not None and mesh is not None:
        raise UsageError(DOING, got="mesh and devices", needed="one of them")
    name = compiler_name(with_chip(compiler or "", hardware if isinstance(hardware, str) else ""))
    chip = find_hardware(chip_of(name) or "v5p" if hardware is None else hardware)
    limit = chip.memory_bytes if memory is None else float(memory)
    options = SearchOptions(
        chip, networks, shape, collective_model(collectives), Objective(limit, _goal(goal)), budget_s, candidates, seed,
        constraints, name, forbidden,
    )  # fmt: skip
    keep = _kept(keep)
    say = sayer(progress)
    with partitioner_in_use(partitioner):
        if devices is not None:
            ways = _over_meshes(devices, chip, partial(_load, program, example_args, keywords=keywords))
            plan = best_of(ways, options, keep, say, "a program that fits on a mesh of these devices")
            if not remat and not microbatches:
                return plan
            mesh = plan.mesh
        load_it = partial(_load, program, example_args, mesh, keywords)
        if not remat and not microbatches:
            return Search(load_it(), options, keep, say).run()
        policies, parts = _several("remat", remat), _several("microbatches", microbatches)
        ways = _trained(program, example_args, policies, parts, load_it)
        return best_of(ways, options, keep, say, "a program that can be searched")


def _goal(name: str) -> Goal:
    goals = {one.value: one for one in Goal}
    if name not in goals:
        raise UsageError(DOING, got=f"goal={name!r}", needed=" or ".join(map(repr, goals)))
    return goals[name]


def _kept(keep: Keep) -> Keep:
    """What is kept, in a form that can be read several times."""
    if isinstance(keep, (bool, Mapping)):
        return keep
    if isinstance(keep, str) or not isinstance(keep, Iterable):
        needed = "True, False, a list of names, or shardings by name"
        raise UsageError(DOING, got=f"keep={keep!r}", needed=needed, hint='keep=["x"], or keep={"x": P("data")}')
    return tuple(keep)


def _several(name: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, (str, int)):
        return (given,)
    if not isinstance(given, Iterable):
        raise UsageError(DOING, got=f"{name}={given!r}", needed="one, or several in a list")
    return tuple(given)


def _load(program: Any, example_args: Sequence[Any], mesh: Any, keywords: Mapping[str, Any]) -> Module:
    is_function = callable(program) and bool(example_args)
    if is_function:
        return load(program, *example_args, mesh=mesh, **keywords)
    module = load(program, *example_args, **keywords)  # which refuses arguments that nothing takes
    return module if mesh is None else with_mesh(module, core_mesh(mesh))


def _over_meshes(
    devices: int | Sequence[int], hardware: Hardware, load_on: Callable[[Mapping[str, int]], Module]
) -> list[TriedWay]:
    """The program over every mesh of so many devices, or of each of several numbers of them."""
    numbers = _several("devices", devices)
    for number in numbers or (devices,):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise UsageError(DOING, got=f"devices={number!r}", needed="a number from 1, or several in a list")
    return [
        TriedWay(
            f"mesh {', '.join(f'{name}={size}' for name, size in axes.items())}",
            partial(load_on, axes),
            order=richest_first(axes),
            devices=number if len(numbers) > 1 else 0,
        )
        for number in numbers
        for axes in meshes_of(number, hardware)
    ]


def _trained(
    program: Any,
    example_args: Sequence[Any],
    remat: Sequence[str],
    microbatches: Sequence[int],
    load: Callable[[], Module],
) -> list[TriedWay]:
    """The program trained in every way that is allowed; as it is written comes first."""
    from pyshardy.frontend.jax_training import Training, trained

    if not callable(program) or not example_args:
        hint = "pyshardy.search(step, *arguments, remat=...)"
        got = "remat or microbatches for a program that is loaded"
        raise UsageError(DOING, got=got, needed="a function and its arguments", hint=hint)
    with trained(Training()) as before:
        load()
    found = {}

    def load_trained(training: Training) -> Module:
        with trained(training, before) as applied:
            module = load()
        found[training] = replace(before, batch=applied.batch)
        return module

    def how(training: Training) -> list[str]:
        return found[training].how(training)

    ways = dict.fromkeys(Training(*one) for one in product((1, *microbatches), ("", *remat)))
    return [TriedWay(str(one), partial(load_trained, one), partial(how, one)) for one in ways]
