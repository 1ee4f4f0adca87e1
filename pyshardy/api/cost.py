"""`cost`: time and memory per device of a program, on a chip that need not be present."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyshardy.api.partition import partition
from pyshardy.core.options import options_of
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.hardware import Hardware
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.results.cost import Cost, collective_model, cost_of
from pyshardy.results.partition import Partition
from pyshardy.results.verbs import Result


def cost(
    program: Any,
    hardware: Hardware | str | Path | None = None,
    *,
    networks: Mapping[str, str] | None = None,
    shape: Sequence[int] | None = None,
    collectives: CollectiveModel | str = CollectiveModel.FORMULA,
    options: PartitionOptions | None = None,
) -> Cost:
    """Estimate the cost of one run of a program per device. Nothing is run, and the hardware is not needed.

    Args:
        program: A result of `load`, `propagate` or `partition`, or anything that `load` takes.
        hardware: The name of a chip, such as "h100" or "v5p", a TOML file, or a `Hardware`; by default the chip of the
            compiler that was asked, or else v5p.
        networks: The networks of mesh axes, such as `{"data": "dcn"}`; other axes use networks from the inside out.
        shape: The dimensions of the torus, such as (16, 16), if the chip has one.
        collectives: The model of collectives: "formula", "measured" or "xla".
        options: The options of partitioning, for a program that is not partitioned yet.

    Raises:
        UsageError: A chip, a network or a model is unknown, or the mesh does not fit.
        ShardyError: The program cannot be partitioned.

    >>> from pyshardy import load
    >>> program = load('''
    ... sdy.mesh @mesh = <["x"=8]>
    ... func.func @main(%a: tensor<8192x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    ...                 %b: tensor<4096x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    ...     -> tensor<8192x4096xbf16> {
    ...   %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    ...     : (tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16>
    ...   return %0 : tensor<8192x4096xbf16>
    ... }''')
    >>> found = cost(program, "h100").estimate
    >>> f"{found.flops_per_device:.3g}", [(row.kind, row.count) for row in found.collectives], found.fits
    ('3.44e+10', [('all_reduce', 1)], True)
    """
    model = collective_model(collectives)
    chip = None if hardware is None else find_hardware(hardware)
    options = options_of(PartitionOptions, options, {}, "estimating")
    if isinstance(program, Partition):
        part = program
    elif isinstance(program, Result):
        part = partition(program, options)
    else:  # the price of a compiler's own program is for those who ask for it
        part = partition(program, options, compiler="none")
    return cost_of(part, chip, networks=networks, shape=shape, collectives=model)
