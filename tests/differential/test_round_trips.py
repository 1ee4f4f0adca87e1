"""Reading a module into nodes and writing it back gives what MLIR itself prints, for programs of all kinds."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from jaxlib.mlir import ir

from programs import PROGRAMS
from pyshardy.ir.bytecode.locations import has_lost_range
from pyshardy.ir.context import make_context
from pyshardy.ir.module import Module
from pyshardy.ir.write import OpByOpWarning
from support.programs import load_example, module_text
from support.reference import jaxlib_version

from .random_programs import Features, random_program
from .test_filecheck_inputs import CASES, FILES


def printed(text: str | bytes, debug_info: bool) -> str:
    """What MLIR prints."""
    with make_context():
        module = ir.Module.parse(text)
        return str(module.operation.get_asm(enable_debug_info=debug_info)).strip()


def check(text: str) -> None:
    """Text with and without places, and bytecode, come back as they were."""
    module = Module.parse(text)
    written = written_again(module, text)
    for debug_info in (False, True):
        assert written.text(debug_info=debug_info).strip() == printed(text, debug_info)
    assert printed(written.bytecode(), True) == printed(text, True)
    again = Module.parse(module.bytecode())
    assert written_again(again, text).text(debug_info=True).strip() == printed(text, True)


def written_again(module: Module, text: str) -> Module:
    """The module from its nodes; where it has resources, op by op."""
    written = module.with_root(module.copy_root())
    with pytest.warns(OpByOpWarning, match="resources") if "dense_resource" in text else nullcontext():
        assert written.mlir
    return written


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name: str) -> None:
    program = PROGRAMS[name]
    if reason := program.skip():
        pytest.skip(reason)
    check(module_text(program))
    text = module_text(program, debug_info=True)
    module = Module.parse(text)
    written = module.with_root(module.copy_root())
    with pytest.warns(OpByOpWarning, match="a range") if has_lost_range(text) else nullcontext():
        assert written.text(debug_info=True).strip() == printed(text, True)


def test_transformer() -> None:
    example = load_example("transformer")
    check(example.lower(example.Config(layers=2)).as_text())


@pytest.mark.parametrize("start", range(0, 30, 10))
def test_random_programs(start: int) -> None:
    for seed in range(start, start + 10):
        check(random_program(seed, Features(priorities=0.3, meshes=2)))


REFUSED = "driver/properties.mlir"
"""A file of a module that cannot be read, as it shows."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", [path for path in FILES if str(path) != REFUSED], ids=str)
def test_filecheck_inputs(path: object) -> None:
    stem = str(path).removesuffix(".mlir")
    for text in {case.text for case in CASES if case.name.startswith(f"{stem}:")}:
        if "unreduced=m" in text and jaxlib_version() < (0, 12):
            pytest.skip("the dialect of jaxlib 0.12")
        check(text)


def test_a_loss_is_noticed() -> None:
    module = Module.parse("func.func @main() attributes {my.note} { return }")
    root = module.copy_root()
    next(iter(root.region.block)).remove_attr("my.note")
    assert module.with_root(root).text().strip() != printed(module.text(), False)
