"""The reference: the Shardy passes compiled into jaxlib. For tests and benchmarks alone."""

from __future__ import annotations

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext  # noqa: F401 (registers the passes)

from pyshardy.ir.context import make_context


def jaxlib_version() -> tuple[int, ...]:
    """Version of the installed jaxlib, such as (0, 12, 0)."""
    from jaxlib.version import __version__

    return tuple(int(part) for part in __version__.split(".")[:3] if part.isdigit())


def run_reference(
    text: str | bytes,
    pipeline: str,
    *,
    allow_unregistered: bool = False,
    debug_info: bool = False,
) -> str:
    """The module after the reference's passes, printed in generic form.

    Args:
        text: A module as text or bytecode.
        pipeline: Passes as inside `builtin.module(...)`, such as "sdy-propagation-pipeline".
        allow_unregistered: Whether unknown dialects are accepted.
        debug_info: Whether to print locations.

    Raises:
        ir.MLIRError: The text, or the module after a pass, is not valid.
    """
    with make_context(allow_unregistered), ir.Location.unknown():
        module = ir.Module.parse(text)
        passes = passmanager.PassManager.parse(f"builtin.module({pipeline})")
        passes.run(module.operation)
        return str(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=debug_info))
