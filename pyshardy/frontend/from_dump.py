"""Modules from a directory that XLA dumps to: `XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_pass_re=shardy-xla"`.

In it, `shardy/NAME/00.input_module.mlir` is the module that XLA passes to Shardy, `02.after_propagation.mlir` the
module after propagation, `NAME.before_optimizations.txt` the HLO before any of XLA's passes, and `NAME/module.mlir` the
module that JAX passes to XLA.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os.path import isdir
from pathlib import Path

from jaxlib.mlir import ir

from pyshardy.errors import UsageError
from pyshardy.frontend.from_text import read_bytes
from pyshardy.ir.functions import main_function
from pyshardy.ir.locations import argument_name
from pyshardy.ir.module import Module

SEPARATOR = "::"
"""The separator between the directory and the name of a module."""
_INPUT = "00.input_module.mlir"
_DECIDED = ("02.after_propagation.mlir", "04.output_module.mlir")
_BEFORE = (".before_optimizations.txt", ".before_optimizations.hlo.pb")
_PARAMETER = re.compile(r'^ .*? parameter\((\d{1,6})\).*?metadata=\{[^}]*?op_name="((?:[^"\\]|\\.)*)"', re.MULTILINE)
_OF_LIBTPU = re.compile(r"\.cl_\d+$")
"""The version of libtpu, which it appends to the names of most of the files that it dumps."""
_HINT = 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_pass_re=shardy-xla", set before jax is imported'


@dataclass(frozen=True, slots=True)
class DumpedModule:
    """The files of one module in a dump.

    Attributes:
        name: Its name in the dump, such as `module_0000.jit_f`.
        shardy: The directory with the steps of XLA's Shardy; None without `--xla_dump_hlo_pass_re`.
        hlo: The HLO before all passes.
        mlir: The module that JAX passed to XLA.
    """

    name: str
    shardy: Path | None = None
    hlo: Path | None = None
    mlir: Path | None = None

    @property
    def source(self) -> Path | None:
        """The file to read the program from: the one nearest to Shardy's input."""
        given = None if self.shardy is None else self.shardy / _INPUT
        return next((path for path in (given, self.hlo, self.mlir) if path is not None and path.is_file()), None)

    @property
    def decided(self) -> Path | None:
        """The file with the shardings that XLA's Shardy decided on."""
        paths = [self.shardy / name for name in _DECIDED] if self.shardy is not None else []
        return next((path for path in paths if path.is_file()), None)


def split_source(source: str | Path) -> tuple[Path, str | None]:
    """A path, and the name of the module after `::`, if there is one.

    >>> split_source("dump::jit_f")[1]
    'jit_f'
    """
    text = str(source)
    directory, separator, name = text.rpartition(SEPARATOR)
    return (Path(directory), name) if separator and directory and name else (Path(text), None)


def is_dump(source: str | Path) -> bool:
    """Whether a source is a directory, with or without the name of a module."""
    return str(source) not in ("", "-") and isdir(split_source(source)[0])  # False for names that no file can have


def dumped_modules(directory: Path) -> dict[str, DumpedModule]:
    """The modules in a dump by name."""
    shardy = _by_name({path.name: path for path in (directory / "shardy").glob("*") if path.is_dir()})
    hlo = {path.name.removesuffix(end): path for end in reversed(_BEFORE) for path in directory.glob(f"*{end}")}
    hlo, mlir = _by_name(hlo), _by_name({path.parent.name: path for path in directory.glob("*/module.mlir")})
    names = sorted({*shardy, *hlo, *mlir})
    found = {name: DumpedModule(name, shardy.get(name), hlo.get(name), mlir.get(name)) for name in names}
    return {name: module for name, module in found.items() if module.source is not None}


def _by_name(paths: Mapping[str, Path]) -> dict[str, Path]:
    """Files by the names of modules, without the number that libtpu appends, unless two would then share a name.

    >>> list(_by_name({"module_0000.jit_f.cl_1014260217": Path("f.txt")}))
    ['module_0000.jit_f']
    """
    short = Counter(map(_short, paths))
    return {name if short[_short(name)] > 1 else _short(name): path for name, path in paths.items()}


def _short(name: str) -> str:
    return _OF_LIBTPU.sub("", name)


def choose(directory: Path, name: str | None = None) -> DumpedModule:
    """The module with a name, or with a name that ends in it, such as `jit_f`; without a name, the only module.

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
    ends = tuple({name, _short(name)})
    wanted = [module for key, module in found.items() if key in ends or key.endswith(tuple(f".{end}" for end in ends))]
    if len(wanted) != 1:
        got = f"no module '{name}'" if not wanted else f"several modules '{name}'"
        raise UsageError(doing, got=got, needed=f"one of {listed}")
    return wanted[0]


def load_dump(
    source: str | Path, module: str | None = None, allow_unregistered_dialects: bool = False, isolate: bool = False
) -> Module:
    """The program in a dump, from its best file, with annotations as in that file.

    Args:
        source: The directory, optionally followed by `::` and the name of a module.
        module: The name of the module.
        allow_unregistered_dialects: Whether ops of unknown dialects are accepted, in generic form.
        isolate: Whether to read it in a separate process, because its bytes may crash the reader.

    Raises:
        UsageError: There is no such module, or there are several.
        InvalidModuleError: The file is not a valid module.
    """
    from pyshardy.frontend.from_text import read_file

    directory, name = split_source(source)
    dumped = choose(directory, module or name)
    assert dumped.source is not None
    found = read_file(dumped.source, allow_unregistered_dialects, isolate)
    if dumped.source.name == _INPUT and dumped.hlo is not None and dumped.hlo.suffix == ".txt":
        return _with_names(found, argument_names(read_bytes(str(dumped.hlo)).decode(errors="replace")))
    return found


def argument_names(hlo: str) -> list[str | None]:
    """The names of the entry parameters in the metadata of HLO text.

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
    """The module with names for its arguments, if it has none and there is a name for each."""
    root = module.copy_root()
    arguments = main_function(root).region.blocks[0].args
    if len(names) != len(arguments):
        return module
    with module.context:
        for argument, name in zip(arguments, names):
            if name is not None and argument_name(argument.location, argument.index) == f"arg{argument.index}":
                argument.location = ir.Location.name(name)
    return module.with_root(root)
