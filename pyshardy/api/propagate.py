"""`propagate`: a sharding for every tensor of a program."""

from __future__ import annotations

from os import PathLike
from typing import Any, TypedDict, Unpack

from pyshardy.api.arguments import dump_folder, module_of, propagation_options, with_compiler
from pyshardy.propagation.options import PropagateOptions, StrategyOption, View
from pyshardy.results.propagation import Propagation, finish_propagation
from pyshardy.results.sharded_program import shard
from pyshardy.results.verbs import Result


class PropagateKeywords(TypedDict, total=False):
    """The options of propagation as keywords; see `PropagateOptions`."""

    strategy: StrategyOption | str
    op_priorities: bool
    user_priorities: bool
    conservative: bool
    trace: bool
    origins: bool
    edges: bool
    dump_directory: str | PathLike[str]
    dedup_functions_fully: bool
    explicit_gather_scatter_batching: bool
    view: View | str | None
    compiler: str | None


def propagate(
    program: Any, options: PropagateOptions | None = None, **keywords: Unpack[PropagateKeywords]
) -> Propagation:
    """Infer a sharding for every tensor of a program. The program given does not change.

    Args:
        program: The result of `load`, or anything that `load` takes: a lowered function, a path, text. The result of
            `propagate` or `partition` is propagated again only if the options differ.
        options: The options of propagation.
        keywords: Single options, such as `strategy="basic"`; they override `options`. `view="xla"`, the default, gives
            the shardings of `jax.jit`; `view="stablehlo"` gives those of Shardy's passes on the unchanged module.
            `compiler="tpu:v5e:2x4"` asks that compiler, and gives the shardings of its program. A function that was
            lowered for a TPU or GPU is taken to its compiler where that is installed; `compiler="none"` does without.

    Raises:
        UsageError: An option is unknown or has a value of the wrong type, or the program cannot be loaded.
        PassError: The module breaks a requirement of propagation; the error names the op.

    >>> program = '''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    ...   %0 = stablehlo.tanh %a : tensor<8xf32>
    ...   return %0 : tensor<8xf32>
    ... }'''
    >>> propagate(program, strategy="basic").outputs[0].sharding
    TensorSharding(<@mesh, [{"x"}]>)
    """
    known = program if isinstance(program, Result) else None
    wanted = propagation_options(options or (known.propagate_options if known else None), keywords, "propagating")
    if known is None:
        module = module_of(program)
        wanted = with_compiler(wanted, module)
        return finish_propagation(*shard(module, wanted, dumps=dump_folder(module, wanted.dump_directory)))
    wanted = with_compiler(wanted, known.before)
    if wanted != known.propagate_options:
        dumps = dump_folder(known.before, wanted.dump_directory)
        return finish_propagation(*shard(known.before, wanted, dumps=dumps))
    found = known.propagated
    assert isinstance(found, Propagation)
    return found
