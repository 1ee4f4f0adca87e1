"""What is written as bytecode is what is written op by op, for programs of all kinds and what passes make of them."""

from __future__ import annotations

from contextlib import suppress

import pytest

from programs import PROGRAMS
from pyshardy.errors import ShardyError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.emit import CannotEmitError, emit_module
from pyshardy.ir.module import Module
from pyshardy.passes.flow import partition_passes
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.passes.pipeline import run_on_root
from pyshardy.passes.pipelines import parse_pipeline
from pyshardy.propagation.options import PropagateOptions
from support.programs import load_example, module_text
from support.reference import jaxlib_version
from support.writing import check_same, emitted

from .random_programs import Features, random_program
from .test_filecheck_inputs import CASES, Case

PASSES = {
    "read": [],
    "propagated": parse_pipeline("sdy-propagation-pipeline"),
    "partitioned": partition_passes(PropagateOptions(), PartitionOptions()),
}


def check(module: Module, stage: str) -> None:
    """Both ways of writing give the same for what some passes leave, also where one of them gives up."""
    root = module.copy_root()
    with suppress(PassError):
        run_on_root(module, root, PASSES[stage])
    emitted(module, root)


def with_places(text: str) -> Module:
    """A module with locations as JAX hands it over, but for those that bytecode does not keep (see `has_lost_range`)."""
    return Module.parse(Module.parse(text.replace(":0 to :", ":1 to :")).bytecode())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("stage", PASSES)
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name: str, stage: str) -> None:
    program = PROGRAMS[name]
    if reason := program.skip():
        pytest.skip(reason)
    check(with_places(module_text(program, debug_info=True)), stage)


@pytest.mark.parametrize("stage", PASSES)
def test_transformer(stage: str) -> None:
    example = load_example("transformer")
    check(with_places(example.lower(example.Config(layers=2)).as_text(debug_info=True)), stage)


@pytest.mark.parametrize("stage", PASSES)
def test_random_programs(stage: str) -> None:
    for seed in range(30):
        check(Module.parse(random_program(seed, Features(priorities=0.3, meshes=2))), stage)


REFUSED = "driver/properties"
"""A file of a module that cannot be read, as it shows."""


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.name.startswith(REFUSED)], ids=lambda case: case.name
)
def test_filecheck_inputs(case: Case) -> None:
    if "NEWER" in case.remarks and jaxlib_version() < (0, 12):
        pytest.skip(f"jaxlib 0.12: {case.remarks['NEWER']}")
    module = Module.parse(case.text)
    root = module.copy_root()
    if "dense_resource" in case.text:  # a resource is of the module it was read with
        with module.context, pytest.raises(CannotEmitError):
            emit_module(root, module.attrs)
        return
    emitted(module, root)
    try:
        run_on_root(module, root, parse_pipeline(case.pipeline))
    except ShardyError:
        assert case.is_refused
        return
    emitted(module, root)


def test_another_module_is_noticed() -> None:
    module = Module.parse(random_program(1, Features()))
    root = module.copy_root()
    run_on_root(module, root, PASSES["propagated"])
    with module.context, pytest.raises(AssertionError):
        check_same(module.with_root(root).mlir, module.mlir, module.attrs)
