"""`partition`: the program of one device."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Unpack

from pyshardy.api.arguments import dump_folder, module_of, propagation_options, with_compiler
from pyshardy.api.propagate import PropagateKeywords
from pyshardy.core.options import options_of, unknown_option
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.propagation.options import PropagateOptions
from pyshardy.results.partition import Partition, finish_partition
from pyshardy.results.propagation import Propagation
from pyshardy.results.sharded_program import shard
from pyshardy.results.verbs import Result


class PartitionKeywords(PropagateKeywords, total=False):
    """The options of partitioning as keywords, and those of propagation; see `PartitionOptions`."""

    halo_exchange: bool
    mesh_axes_groups: bool | None
    rng_bit_generator_unsafe: bool
    replicate_unsupported: bool


def partition(
    program: Any,
    options: PartitionOptions | None = None,
    propagate_options: PropagateOptions | None = None,
    **keywords: Unpack[PartitionKeywords],
) -> Partition:
    """Make the program of one device, with local shapes and explicit collectives.

    Args:
        program: The result of `propagate`, or of `load`, or anything that `load` takes. It does not change.
        options: The options of partitioning.
        propagate_options: The options of propagation; by default those that the program was propagated with, or the
            defaults of `propagate`. A program that was propagated with other options is propagated again.
        keywords: Single options of both, such as `halo_exchange=False`; they override `options` and
            `propagate_options`. `dump_directory` is that of partitioning; it also gets the module before propagation,
            unless the program is propagated already.

    Raises:
        UsageError: An option is unknown or has a value of the wrong type, or the program cannot be loaded.
        PassError: The program cannot be partitioned; the error names the op.
        ShardyError: Shardings are on meshes with different numbers of devices.

    >>> program = '''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
    ...   %0 = stablehlo.constant dense<0.0> : tensor<f32>
    ...   %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0]
    ...     : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    ...   return %1 : tensor<4xf32>
    ... }'''
    >>> found = partition(program, halo_exchange=False)
    >>> [(row.kind, row.axes, row.sent_bytes_per_device) for row in found.traffic.collectives]
    [('all_reduce', ('"x"',), 16)]
    """
    doing = "partitioning"
    own = {name: value for name, value in keywords.items() if name in _OWN}
    others = {name: value for name, value in keywords.items() if name not in _OWN}
    for name in others:
        if name not in PropagateKeywords.__annotations__:
            raise unknown_option(name, PartitionKeywords.__annotations__, doing)
    chosen = options_of(PartitionOptions, options, own, doing)
    known = program if isinstance(program, Result) else None
    wanted = propagation_options(propagate_options or (known.propagate_options if known else None), others, doing)
    if known is not None and wanted == known.propagate_options:
        propagation = known.propagated if isinstance(known, Propagation) else None
        return _inspected(finish_partition(known.sharded, chosen, propagation=propagation))
    module = module_of(program)
    wanted = with_compiler(wanted, module)
    dumps = dump_folder(module, chosen.dump_directory or wanted.dump_directory)
    sharded, root = shard(module, wanted, chosen.dump_directory, dumps)
    return _inspected(finish_partition(sharded, chosen, root))


def _inspected(found: Partition) -> Partition:
    """Call the callbacks of `jax.debug.inspect_array_sharding` with the shardings of a result; return the result."""
    _ = found.sharded.inspected
    return found


_OWN = frozenset(field.name for field in fields(PartitionOptions))
