"""Modules from a directory that XLA dumps to: `XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_pass_re=shardy-xla"`.

In it, `shardy/NAME/00.input_module.mlir` is what XLA hands to Shardy, `02.after_propagation.mlir` what Shardy made of
it, `NAME.before_optimizations.txt` the HLO before any of XLA's passes, and `NAME/module.mlir` what JAX gave to XLA.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxlib.mlir import ir

from pyshardy.errors import UsageError
from pyshardy.frontend.from_text import read_bytes
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module

SEPARATOR = "::"
"""Stands between the directory and the module in it."""
_INPUT = "00.input_module.mlir"
_DECIDED = ("02.after_propagation.mlir", "04.output_module.mlir")
_BEFORE = (".before_optimizations.txt", ".before_optimizations.hlo.pb")
_PARAMETER = re.compile(r'^ .*? parameter\((\d+)\).*?metadata=\{[^}]*?op_name="((?:[^"\\]|\\.)*)"', re.MULTILINE)
_HINT = 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_pass_re=shardy-xla", set before jax is imported'


@dataclass(frozen=True, slots=True)
class DumpedModule:
    """The files of one module in a dump.

    Attributes:
        name: Its name there, such as `module_0000.jit_f`.
        shardy: The directory with the steps of XLA's Shardy; None without `--xla_dump_hlo_pass_re`.
        hlo: The HLO before all passes.
        mlir: The module that JAX gave to XLA.
    """

    name: str
    shardy: Path | None = None
    hlo: Path | None = None
    mlir: Path | None = None

    @property
    def source(self) -> Path | None:
        """The file to read the program from: the nearest to what XLA hands to Shardy."""
        given = None if self.shardy is None else self.shardy / _INPUT
        return next((path for path in (given, self.hlo, self.mlir) if path is not None and path.is_file()), None)

    @property
    def decided(self) -> Path | None:
        """The file with the shardings that XLA's Shardy decided on."""
        paths = [self.shardy / name for name in _DECIDED] if self.shardy is not None else []
        return next((path for path in paths if path.is_file()), None)


def split_source(source: str | Path) -> tuple[Path, str | None]:
    """A path and the name of the module in it, which may stand behind `::`.

    >>> split_source("dump::jit_f")[1]
    'jit_f'
    """
    text = str(source)
    directory, separator, name = text.rpartition(SEPARATOR)
    return (Path(directory), name) if separator and directory and name else (Path(text), None)


def is_dump(source: str | Path) -> bool:
    """Whether a source is a directory, alone or with the name of a module."""
    return str(source) not in ("", "-") and split_source(source)[0].is_dir()


def dumped_modules(directory: Path) -> dict[str, DumpedModule]:
    """The modules in a dump by name."""
    shardy = {path.name: path for path in (directory / "shardy").glob("*") if path.is_dir()}
    hlo = {path.name.removesuffix(end): path for end in reversed(_BEFORE) for path in directory.glob(f"*{end}")}
    mlir = {path.parent.name: path for path in directory.glob("*/module.mlir")}
    names = sorted({*shardy, *hlo, *mlir})
    found = {name: DumpedModule(name, shardy.get(name), hlo.get(name), mlir.get(name)) for name in names}
    return {name: module for name, module in found.items() if module.source is not None}


def choose(directory: Path, name: str | None = None) -> DumpedModule:
    """The module of a name, or of one like `jit_f` that ends that of one module; the only one without a name.

    Raises:
        UsageError: There is no such module, or there are several.
    """
    found = dumped_modules(directory)
    doing = f"reading {directory}"
    if not found:
        raise UsageError(doing, got="a directory without a module", needed="a dump of XLA", hint=_HINT)
    listed = ", ".join(found)
    if name is None:
        if len(found) > 1:
            hint = f"{directory}{SEPARATOR}{next(iter(found))}, module=..., or --module"
            raise UsageError(doing, got=f"several modules: {listed}", needed="the name of one", hint=hint)
        return next(iter(found.values()))
    wanted = [module for key, module in found.items() if key == name or key.endswith("." + name)]
    if len(wanted) != 1:
        got = f"no module '{name}'" if not wanted else f"several modules '{name}'"
        raise UsageError(doing, got=got, needed=f"one of {listed}")
    return wanted[0]


def load_dump(
    source: str | Path, module: str | None = None, allow_unregistered_dialects: bool = False, isolate: bool = False
) -> Module:
    """The program in a dump as its best file has it, with its annotations as they are there.

    Args:
        source: The directory, with `::` and the name of a module or without.
        module: The name of the module.
        allow_unregistered_dialects: Whether ops of unknown dialects are accepted, in generic form.
        isolate: Whether it is read in a process of its own, which its bytes may end.

    Raises:
        UsageError: There is no such module, or there are several.
        InvalidModuleError: Its file holds no valid module.
    """
    from pyshardy.frontend.from_text import load_file

    directory, name = split_source(source)
    dumped = choose(directory, module or name)
    assert dumped.source is not None
    found = load_file(dumped.source, allow_unregistered_dialects, isolate)
    if dumped.source.name == _INPUT and dumped.hlo is not None and dumped.hlo.suffix == ".txt":
        return _with_names(found, argument_names(read_bytes(str(dumped.hlo)).decode(errors="replace")))
    return found


def argument_names(hlo: str) -> list[str | None]:
    """What the metadata of HLO text call the parameters of its entry.

    >>> argument_names('''ENTRY %main (a: f32[]) -> f32[] {
    ...   ROOT %a = f32[] parameter(0), metadata={op_name="params[\\\\'w\\\\']"}
    ... }''')
    ["params['w']"]
    """
    entry = re.search(r"^ENTRY .*?^\}", hlo, re.MULTILINE | re.DOTALL)
    names: dict[int, str] = {}
    for line in entry.group().splitlines() if entry is not None else ():
        match = _PARAMETER.match(line)
        if match is not None:
            names[int(match[1])] = re.sub(r"\\(.)", r"\1", match[2])
    return [names.get(index) for index in range(max(names, default=-1) + 1)]


def _with_names(module: Module, names: Sequence[str | None]) -> Module:
    """The module with its arguments named, where it does not name them itself and the names are for all of them."""
    root = module.copy_root()
    arguments = main_function(root).region.blocks[0].args
    if len(names) != len(arguments):
        return module
    with module.context:
        for argument, name in zip(arguments, names):
            if name is not None and not isinstance(argument.location, ir.NameLoc):
                argument.location = ir.Location.name(name)
    return module.with_root(root)
