"""Modules as `sdy-convert-global-to-local` gets them: random programs after the passes before it, the reference's."""

from __future__ import annotations

from collections.abc import Callable

from pyshardy.errors import InvalidShardingError
from pyshardy.ir.functions import functions, return_op, set_result_sharding, signature
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding

from .random_programs import Features, random_program
from .reference_process import Died, ReferenceProcess, Refused
from .reshard_programs import FAMILIES as RESHARD_FAMILIES
from .reshard_programs import single_ops
from .reshard_shardings import Style
from .rule_instances import KINDS
from .special_programs import SPECIAL
from .targeted_programs import product_program

STAGES = (
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true mark-partial-result-with-unreduced-axes=true})",
    "canonicalize{enable-patterns=sdy-reshard top-down=false}",
    "sdy-resolve-permutation-factors",
    "func.func(sdy-reshard-to-collectives)",
    "func.func(sdy-optimize-collectives)",
    "canonicalize{enable-patterns=sdy-collective top-down=false}",
    "sdy-pad-for-divisibility",
    "func.func(sdy-resolve-single-device-sharding)",
)
"""What runs before; the names of passes are the reference's."""
_TIDY = (
    "sdy-remove-size-one-axes,func.func(sdy-sink-data-flow-edges),sdy-remove-sharding-groups,func.func(sdy-sharding-constraint-to-reshard),"
    "sdy-update-non-divisible-input-output-shardings,sdy-remove-sub-axes-in-input-output-shardings,sdy-close-shardings"
)
_PROGRAM = Features(ops=8, calls=0.1, groups=0.0, manual=0.1, control_flow=0.15, annotated=0.4, constraints=0.2)
STYLES = (Style(missing=0.0), Style(missing=0.0, density=0.8, sub_axes=0.4), Style(missing=0.1, repeat=0.8))

Family = tuple[Callable[[int], str], str]
"""How a module is made from a seed, and what runs first on it."""

FAMILIES: dict[str, Family] = {
    "single": (lambda seed: returning(single_ops(KINDS, 1, seed, STYLES)), _TIDY),
    "special": (lambda seed: returning(single_ops(SPECIAL, 1, seed, STYLES)), _TIDY),
    "product": (lambda seed: returning(product_program(seed)), _TIDY),
    "chain": (lambda seed: RESHARD_FAMILIES["chain"][0](seed, STYLES), _TIDY),
    "program": (lambda seed: random_program(seed, _PROGRAM), "sdy-propagation-pipeline"),
}


def returning(text: str) -> str:
    """The module with a function that returns all that it computes, if it returned nothing."""
    module = Module.parse(text)
    root = module.copy_root()
    function = next(functions(root))
    last = return_op(function)
    if last.operands:
        return text
    results = [result for op in function.region.block for result in op.results if result.type.is_ranked_tensor]
    new = Op("func.return", results, location=last.location)
    new.insert_before(last)
    last.erase()
    for index, result in enumerate(results):
        set_result_sharding(function, index, get_sharding(result))
    function.set_attr("function_type", signature(function))
    return module.with_root(root).text(generic=True)


def local_input(family: str, seed: int, reference: ReferenceProcess) -> str | None:
    """A module after all stages before; None if the reference does not get that far."""
    make, first = FAMILIES[family]
    try:
        text = make(seed).replace('"stablehlo.constant"', '"sdy.constant"')  # as import leaves them
        return reference.run(text, ",".join((first, *STAGES)))
    except (InvalidShardingError, Refused, Died):
        return None
