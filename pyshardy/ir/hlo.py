"""XLA's converters between StableHLO and HLO, from jaxlib; all private ones are used only here.

They are libraries like MLIR's parser: none of them propagates shardings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlib.mlir import ir

from pyshardy.errors import InvalidModuleError, UnsupportedVersionError
from pyshardy.ir.context import make_context
from pyshardy.ir.diagnostics import errors_of

PORTABLE_PRODUCER = b"StableHLO_v"
"""The producer named in a portable artifact of StableHLO, right after the start of the bytecode."""


def bytecode_of_hlo_text(text: str, name: str) -> bytes:
    """The StableHLO of an HLO module in text form, as bytecode.

    Args:
        text: The module.
        name: The name of the module in messages.

    Raises:
        InvalidModuleError: It is not an HLO module, or StableHLO has no op for something in it.
    """
    parse = _converter("_hlo", "hlo_module_from_text")
    found = _convert(lambda: parse(text), name, "HLO as text, such as *.before_optimizations.txt in a dump of XLA")
    return bytecode_of_hlo_proto(found.as_serialized_hlo_module_proto(), name)


def bytecode_of_hlo_proto(content: bytes, name: str) -> bytes:
    """The StableHLO of a serialized `HloModuleProto`, as bytecode; arguments as those of `bytecode_of_hlo_text`."""
    convert = _converter("_jax", "mlir", "hlo_to_stablehlo")
    found = _convert(lambda: convert(content), name, "an HloModuleProto or HloProto, such as *.hlo.pb in a dump of XLA")
    return bytes(found)


def is_portable(content: bytes) -> bool:
    """Whether bytecode is a portable artifact of StableHLO, which is in the dialect VHLO."""
    return PORTABLE_PRODUCER in content[:32]


def bytecode_of_portable(content: bytes, name: str) -> bytes:
    """The StableHLO of a portable artifact, as bytecode.

    Raises:
        InvalidModuleError: It is not an artifact, or of a newer StableHLO than this jaxlib's.
    """
    from io import BytesIO

    from pyshardy.ir.dialects import stablehlo

    with make_context() as context, errors_of(context) as errors:  # MLIR would print the errors
        try:
            found = stablehlo.deserialize_portable_artifact(context, content)
        except CONVERTER_ERRORS as error:
            needed = "a StableHLO artifact of no later version"
            got = "; ".join(dict.fromkeys(found.message for found in errors)) or _one_line(error)
            raise InvalidModuleError("reading a module", where=name, got=got, needed=needed) from error
        stream = BytesIO()
        found.operation.write_bytecode(stream)
    return stream.getvalue()


def to_hlo(module: str | bytes) -> bytes:
    """The HLO proto that XLA makes of a StableHLO module in text or bytecode."""
    convert = _converter("_jax", "mlir", "mlir_module_to_xla_computation")
    proto: bytes = convert(module, use_tuple_args=False, return_tuple=False).as_serialized_hlo_module_proto()
    return proto


def from_hlo(proto: bytes) -> ir.Module:
    """The StableHLO module of an HLO proto, in the context that is entered."""
    return ir.Module.parse(_converter("_jax", "mlir", "hlo_to_stablehlo")(proto))


_CONVERSIONS: list[str] = []
"""The converters used in this process, by name."""


def has_converted() -> bool:
    """Whether anything was converted in this process; if so, XLA has read its flags."""
    return bool(_CONVERSIONS)


def _convert(convert: Callable[[], Any], name: str, needed: str) -> Any:
    try:
        return convert()
    except CONVERTER_ERRORS as error:
        raise InvalidModuleError("reading a module", where=name, got=_one_line(error), needed=needed) from error


CONVERTER_ERRORS = (RuntimeError, ValueError, MemoryError, ir.MLIRError)
"""The exceptions of the converters; jaxlib's own errors are RuntimeErrors."""


def _one_line(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "more than memory can hold"
    return " ".join(str(error).split("\n\n")[0].split())


def _converter(module: str, *names: str) -> Any:
    """A private object of jaxlib.

    Raises:
        UnsupportedVersionError: This jaxlib does not have it.
    """
    from importlib import import_module

    try:
        found: Any = import_module(f"jaxlib.{module}")
        for name in names:
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise UnsupportedVersionError(
            "converting between StableHLO and HLO",
            got=f"a jaxlib without {'.'.join((module, *names))}",
            needed="jaxlib 0.10 or newer",
        ) from error
    _CONVERSIONS.append(names[-1])
    return found
