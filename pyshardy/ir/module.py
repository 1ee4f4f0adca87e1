"""`Module`: a program in pyshardy, read from MLIR once and written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from io import BytesIO
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.text import named_type
from pyshardy.errors import InvalidModuleError, UsageError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.bytecode.locations import has_lost_range
from pyshardy.ir.context import make_context
from pyshardy.ir.copy_module import copy_module
from pyshardy.ir.diagnostics import Diagnostic, errors_of
from pyshardy.ir.locations import source_position
from pyshardy.ir.nodes import Op
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.read import bytecode_of, check_op_names, read_module
from pyshardy.ir.readable import check_printable, check_readable
from pyshardy.ir.strings import utf8_bytes
from pyshardy.ir.write import write_module


class Module:
    """An immutable StableHLO module.

    Make one with `Module.parse`; passes return new ones.

    Args:
        context: The MLIR context that everything in the module belongs to.
        attrs: The attributes and types of that context.
        mlir: The MLIR module, or None.
        root: The module as nodes, or None; the MLIR module is then written from them on demand. The module owns the
            nodes from now on.
    """

    def __init__(
        self, context: ir.Context, attrs: AttrTable, *, mlir: ir.Module | None = None, root: Op | None = None
    ) -> None:
        assert (mlir is None) != (root is None)
        self.context = context
        self.attrs = attrs
        self._mlir = mlir
        self._root = root
        self.origin: Any = None
        """Facts about the program that the frontend knows beyond the module; passes keep them."""
        self.name = "-"
        """The name of the text that it was read from; MLIR calls it "-". Passes keep it."""

    @classmethod
    def parse(
        cls,
        source: str | bytes,
        *,
        name: str = "-",
        allow_unregistered_dialects: bool = False,
        keep_inner_modules: bool = True,
    ) -> Module:
        """Read a module from text or bytecode and verify it.

        Args:
            source: The module.
            name: What to call the source in messages: a file name.
            allow_unregistered_dialects: Whether ops of unknown dialects are accepted, in generic form.
            keep_inner_modules: Whether modules inside the module stay. No call can name their functions, and XLA leaves
                them out.

        Raises:
            UsageError: The source is neither text nor bytes.
            InvalidModuleError: The source is not a valid module; lists MLIR's diagnostics.

        >>> module = Module.parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
        >>> "func.func @main" in module.text()
        True
        """
        if not isinstance(source, (str, bytes)):
            raise UsageError("reading a module", got=named_type(source), needed="text or bytecode")
        if isinstance(source, str):
            source = utf8_bytes(source, name)
        context = make_context(allow_unregistered_dialects)
        with context, errors_of(context) as errors:
            try:
                parsed = ir.Module.parse(source)
            except _PARSER_ERRORS as error:
                raise invalid_module("reading a module", errors, error, name) from error
            has_vhlo = b"vhlo" in source
            if allow_unregistered_dialects and (has_vhlo or not keep_inner_modules):
                check_op_names(bytecode_of(parsed).names)  # to ask an op for another name ends the process
            if has_vhlo:
                check_printable(parsed, name)
            if not keep_inner_modules:
                for inner in [op for op in parsed.body.operations if op.operation.name == "builtin.module"]:
                    inner.operation.erase()
        module = cls(context, AttrTable(has_lost_range(source)), mlir=parsed)
        module.name = name
        return module

    @property
    def mlir(self) -> ir.Module:
        """The MLIR module; do not change it."""
        if self._mlir is None:
            assert self._root is not None
            with self.context:
                self._mlir = write_module(self._root, self.attrs)
        return self._mlir

    @property
    def root(self) -> Op:
        """The module as nodes, for reading; do not change them."""
        if self._root is None:
            with self.context:
                self._root = read_module(self.mlir, self.attrs)
        return self._root

    def copy_root(self) -> Op:
        """A copy of the module as nodes, to work on; if no nodes exist yet, the module is read for it."""
        with self.context, pause_gc():
            return read_module(self.mlir, self.attrs) if self._root is None else copy_module(self._root)

    def with_root(self, root: Op) -> Module:
        """A module with other nodes of the same context, and the same origin."""
        module = Module(self.context, self.attrs, root=root)
        module.origin, module.name = self.origin, self.name
        return module

    def annotate(self, shardings: Mapping[str, Any], mesh: Any = None) -> Module:
        """A module with shardings on the inputs and outputs of these names, as `pyshardy.annotate` makes it.

        >>> text = "func.func @main(%x: tensor<4xf32> loc(\\"x\\")) -> tensor<4xf32> { return %x : tensor<4xf32> }"
        >>> print(Module.parse(text).annotate({"x": "data"}, mesh={"data": 4}).text().splitlines()[1])
          sdy.mesh @mesh = <["data"=4]>
        """
        found: Module = import_module(_ANNOTATE).annotate(self, shardings, mesh)
        return found

    def text(self, *, debug_info: bool = False, generic: bool = False) -> str:
        """The module in MLIR's textual form, ending in a newline.

        Args:
            debug_info: Whether to print locations.
            generic: Whether to print every op in generic form.

        Raises:
            InvalidModuleError: The module holds a name, an attribute or a type that MLIR prints but cannot read again,
                such as an empty symbol.
        """
        with self.context:
            shown = {"enable_debug_info": bool(debug_info), "print_generic_op_form": bool(generic)}
            text = str(self.mlir.operation.get_asm(**shown))
        check_readable(text, self.context)
        return text.rstrip("\n") + "\n"

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode."""
        stream = BytesIO()
        with self.context:
            self.mlir.operation.write_bytecode(stream)
        return stream.getvalue()

    def verify(self) -> None:
        """Raise `InvalidModuleError` unless MLIR's verifier accepts the module."""
        with self.context:
            mlir = self.mlir
            with errors_of(self.context) as errors:
                try:
                    mlir.operation.verify()
                except ir.MLIRError as error:
                    raise invalid_module("verifying a module", errors, error, "-") from error


_ANNOTATE = "pyshardy.frontend.annotate"
"""The annotate function of the frontend, which knows names; imported on first use."""
_PARSER_ERRORS = (ir.MLIRError, ValueError, MemoryError, RuntimeError)
"""The exceptions of the bindings for text and bytecode that they cannot read."""


def invalid_module(
    doing: str, diagnostics: Sequence[Diagnostic], error: BaseException, name: str
) -> InvalidModuleError:
    """The error for a module that MLIR refuses, with its first diagnostic in words and all of them attached.

    Args:
        doing: The action, for the message.
        diagnostics: The diagnostics of MLIR.
        error: The exception of the bindings.
        name: The name of the source; MLIR calls it "-".
    """
    if not diagnostics:
        reason = "more than memory can hold" if isinstance(error, MemoryError) else str(error)
        return InvalidModuleError(doing, where=name, got=reason, needed="StableHLO as text or bytecode")
    first = diagnostics[0]
    position = source_position(first.location)
    where = name
    if position is not None:
        file, line, column = position
        where = f"{name if file == '-' else file}:{line}:{column}"
    notes = "; ".join(note.message for note in first.notes)
    got = f"{first.message} ({notes})" if notes else first.message
    needed = _needed(first.message)
    if needed is None and position is not None and position[1:] == (1, 1):
        needed = _STABLEHLO
    found = InvalidModuleError(doing, where=where, got=got, needed=needed)
    found.diagnostics = tuple(diagnostics)
    return found


_STABLEHLO = "StableHLO, such as jax.jit(f).lower(...).as_text() gives"
_NEEDED = {
    "unknown axis name": "an axis of the mesh that the sharding is on",
    "duplicate axis ref": "every axis at most once in a sharding",
    "duplicate axis name": "every axis once in a mesh",
    "sharding doesn't match tensor rank": "one dimension sharding for every dimension of the tensor",
    "unknown mesh": "a mesh that the module defines",
    "unregistered dialect": "ops that jaxlib knows, or allow_unregistered_dialects=True (--allow-unregistered-dialect)",
    " is unknown (tried ": _STABLEHLO,
}
"""The text for `needed`, by a part of MLIR's message."""


def _needed(message: str) -> str | None:
    return next((needed for part, needed in _NEEDED.items() if part in message), None)
