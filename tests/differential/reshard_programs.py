"""The modules on which inserting reshards, verifying unreduced axes and canonicalizing are compared, by seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import ReductionKind
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes

from .collective_plans import ReshardWriter
from .collective_programs import collective_program
from .draw import Draw
from .permute_programs import PermuteWriter, communicating_product
from .random_programs import Features, random_program
from .reshard_shardings import Sharder, Style
from .rule_instances import KINDS
from .special_programs import SPECIAL
from .targeted_programs import product_program, unreduced_program

STYLES = (
    Style(),
    Style(missing=0.05, density=0.8, sub_axes=0.4),
    Style(other_mesh=0.3, single_device=0.1),
    Style(unreduced=0.1, missing=0.3),
    Style(unreduced=0.05, kinds=tuple(ReductionKind), replicated=0.1),
    Style(repeat=0.8, density=0.6),
)
OLD_STYLES = tuple(replace(style, single_device=0.0) for style in STYLES if style.kinds == (ReductionKind.SUM,))
"""What jaxlib before 0.12 knows: partial values that are summed, and no ops on single devices."""

INSERT = tuple(
    f"func.func(sdy-insert-explicit-reshards{{{options}}})"
    for options in (
        "enable-full-version=false",
        "enable-full-version=true",
        "enable-full-version=true mark-partial-result-with-unreduced-axes=true",
    )
)
VERIFY = ("func.func(sdy-verify-unreduced-axes)",)
_RESOLVE = "func.func(sdy-resolve-single-device-sharding{{replica-count={} partition-count={}}})"
DEVICES = tuple(f"{INSERT[1]},{_RESOLVE.format(*counts)}" for counts in ((1, 1), (1, 8), (8, 1)))
"""Ops on single devices, in what inserted reshards leave of them and as they come."""
CANONICALIZE = tuple(
    f"canonicalize{{enable-patterns={label} top-down={order}}}"
    for label in ("sdy-collective", "sdy-reshard")
    for order in ("false", "true")
) + ("canonicalize",)
PLAN = (
    "func.func(sdy-reshard-to-collectives)",
    "func.func(sdy-reshard-to-collectives{keep-redundant-reshards=true})",
    f"{CANONICALIZE[2]},func.func(sdy-reshard-to-collectives,sdy-optimize-collectives),{CANONICALIZE[0]}",
)
OPTIMIZE = ("func.func(sdy-optimize-collectives)",)
FUSE = ("func.func(sdy-remove-all-gather-reduce-scatter-for-cmv1)",)
TO_THE_END = tuple(f"{insert},{PLAN[2]},{FUSE[0]}" for insert in INSERT[1:])
"""From a module with shardings to collectives."""
PROPAGATE_AND_EXPORT = tuple(
    f"sdy-propagation-pipeline,sdy-export-pipeline{{enable-insert-explicit-collectives=true{more}}}"
    for more in (
        "",
        " mark-partial-result-with-unreduced-axes=true remove-all-gather-reduce-scatter-for-cmv1=true",
    )
)
"""From a module as a user writes it to collectives."""


def _chain(seed: int, styles: tuple[Style, ...]) -> str:
    """Ops of all kinds on the results of one another, with control flow, calls and manual computations."""
    random = Random(f"chain {seed}")
    ops = random.randint(2, 15)
    features = Features(ops=ops, control_flow=0.15, constraints=0.03, groups=0, annotated=0, manual=0.08, calls=0.08)
    module = Module.parse(random_program(seed, features))
    meshes = module_meshes(module.root)
    first = next(iter(meshes.values()))
    if random.random() < 0.4:
        meshes |= {"device0": Mesh((), [0]), "device1": Mesh((), [1])}
    if random.random() < 0.3:
        meshes["backwards"] = Mesh(first.axes, range(first.size)[::-1])
    if random.random() < 0.3:
        meshes["same"] = first
    return _sharded(module, Sharder(random, random.choice(styles), meshes))


def _devices(seed: int, styles: tuple[Style, ...]) -> str:
    """Short chains in which many an op is on a single device."""
    random = Random(f"devices {seed}")
    features = Features(ops=random.randint(2, 8), control_flow=0.1, groups=0, annotated=0, manual=0.05, calls=0.05)
    module = Module.parse(random_program(seed, features))
    meshes = module_meshes(module.root) | {f"device{number}": Mesh((), [number]) for number in range(2)}
    style = replace(random.choice(styles), single_device=0.4, missing=0.4, unreduced=0.0)
    return _sharded(module, Sharder(random, style, meshes))


def single_ops(
    makers: dict[str, Callable[[Draw], str]], count: int, seed: int, styles: tuple[Style, ...], more: str = ""
) -> str:
    draw = Draw(f"{', '.join(makers)} {seed}")
    kinds = [draw.choice([*makers, *([more] * len(makers) if more else [])]) for _ in range(count)]
    functions = [makers[kind](draw).replace("@NAME", f"@f{index}", 1) for index, kind in enumerate(kinds)]
    module = Module.parse('sdy.mesh @mesh = <["x"=2]>\n' + "".join(functions))
    return _sharded(module, Sharder(Random(f"ops {seed}"), draw.choice(styles)))


def _sharded(module: Module, sharder: Sharder) -> str:
    root = module.copy_root()
    with module.context:
        sharder.shard(root)
    return Module(module.context, module.attrs, root=root).text(generic=True)


Program = Callable[[int, tuple[Style, ...]], str]
"""From a seed and the styles to choose from to the text of a module."""

FAMILIES: dict[str, tuple[Program, tuple[str, ...]]] = {
    "chain": (_chain, INSERT + VERIFY),
    "single": (lambda seed, styles: single_ops(KINDS, 2, seed, styles), INSERT + VERIFY),
    "special": (lambda seed, styles: single_ops(SPECIAL, 1, seed, styles, more="custom_rule"), INSERT + VERIFY),
    "product": (lambda seed, styles: product_program(seed), INSERT),
    "unreduced": (lambda seed, styles: unreduced_program(seed), INSERT + VERIFY),
    "collectives": (lambda seed, styles: collective_program(seed), VERIFY + CANONICALIZE),
    "devices": (_devices, (*DEVICES, DEVICES[1].rpartition(",")[2])),
    "plans": (lambda seed, styles: ReshardWriter(seed, powers=True).text(), PLAN),
    "odd plans": (lambda seed, styles: ReshardWriter(seed, powers=False).text(), PLAN),
    "permutations": (lambda seed, styles: PermuteWriter(seed).text(), OPTIMIZE),
    "fused": (lambda seed, styles: communicating_product(seed), FUSE),
    "to the end": (_chain, TO_THE_END),
    "product to the end": (lambda seed, styles: product_program(seed), TO_THE_END),
    "from the beginning": (lambda seed, styles: random_program(seed, Features(groups=0.0)), PROPAGATE_AND_EXPORT),
    "clean-up": (_chain, CANONICALIZE[:1] + (f"{INSERT[1]},{CANONICALIZE[2]}",)),
    "dead": (lambda seed, styles: single_ops(KINDS, 4, seed, styles), CANONICALIZE[:1]),
}
"""Per family, how to make a module and which pipelines to compare on it."""
