"""The analysis of one program that a script compiled: its shardings, what is gathered whole, and the estimate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from pyshardy.api.cost import cost
from pyshardy.api.partition import partition
from pyshardy.api.propagate import propagate
from pyshardy.compilers.choice import compiler_for, stand_in
from pyshardy.compilers.target import PLATFORMS, chips_of, compiler_name, with_chip
from pyshardy.core.text import format_shape
from pyshardy.costing.chips import chip_names
from pyshardy.costing.places import By
from pyshardy.errors import ShardyError
from pyshardy.frontend.load import load_content
from pyshardy.report.cost import cost_tables, place_tables
from pyshardy.report.layout import paragraph
from pyshardy.report.printing import DEFAULTS, Page, Printable, TableOptions
from pyshardy.report.specs import format_sharding
from pyshardy.report.tables import summary_tables
from pyshardy.results.cost import Cost
from pyshardy.results.pages import report_bytes
from pyshardy.results.propagation import Propagation
from pyshardy.watching.names import lost_names

_GPU = "gpu"
_CUDA = "cuda"
_TPU = "tpu"
_WORD = re.compile(r"\w+")
_TPUS = {"TPU v5 lite": "v5e", "TPU v5": "v5p", "TPU v6 lite": "v6e"}
"""What `jax.Device.device_kind` says of chips that it calls otherwise than the table of chips."""
_MOST_REPLICATIONS = 8


@dataclass(frozen=True, slots=True)
class Wishes:
    """How programs are analysed.

    Attributes:
        hardware: The chip that prices are for, or a TOML file; empty for that of the script's devices.
        compiler: The compiler to ask; None for that of the chip, if it is installed; "none" for none.
        by: Sum the time by "scope" or "line", too; empty for neither.
        tables: How tables are shown.
    """

    hardware: str = ""
    compiler: str | None = None
    by: str = ""
    tables: TableOptions = DEFAULTS


@dataclass(frozen=True, slots=True, repr=False)
class Analysis(Printable):
    """The analysis of one program.

    Attributes:
        name: The name of the module, such as "jit_train_step".
        propagation: The shardings.
        cost: The estimate; None if the program cannot be partitioned.
        notes: What went wrong or is not as it was asked for, in sentences.
        by: What the time is summed by, too; empty for nothing.
        options: How tables are shown.
    """

    name: str
    propagation: Propagation
    cost: Cost | None
    notes: tuple[str, ...] = ()
    by: str = ""
    options: TableOptions = DEFAULTS

    def tables(self) -> Page:
        """The shardings, the tensors that are gathered whole and the estimate."""
        summary = self.propagation.summary_with_origins

        def lines(width: int) -> list[Text]:
            found = [line for note in self.notes for line in paragraph(f"note: {note}", width, "yellow")]
            found += summary_tables(summary, self.options).lines(width)
            found += self._whole(width)
            if self.cost is not None:
                found += [Text(), *cost_tables(self.cost.told).lines(width)]
                if self.by:
                    found += [Text(), *place_tables(By(self.by), self.cost.by(self.by)).lines(width)]
            return found

        return Page(lines)

    def inputs(self) -> dict[str, str]:
        """The shape and the sharding of every input by its name, as text."""
        notation = self.options.notation
        return {
            row.name: f"{format_shape(row.shape, row.dtype)}, {format_sharding(row.sharding, notation)}"
            for row in self.propagation.summary.inputs
        }

    def _whole(self, width: int) -> list[Text]:
        """What the compiler gathers whole, the largest first."""
        told = list(dict.fromkeys(map(str, self.propagation.replications)))
        if not told:
            return []
        found = [Text(), Text("gathered whole on every device", style="bold")]
        for text in told[:_MOST_REPLICATIONS]:
            found += paragraph(text, width)
        if len(told) > _MOST_REPLICATIONS:
            found += paragraph(f"and {len(told) - _MOST_REPLICATIONS} more", width)
        return found

    def to_json(self) -> dict[str, Any]:
        """The shardings, the tensors that are gathered whole and the estimate, as JSON-ready data."""
        return {
            "name": self.name,
            "devices": self.propagation.device_count,
            "compiler": self.propagation.propagate_options.compiler,
            "notes": list(self.notes),
            "shardings": self.propagation.summary_with_origins.to_json(),
            "replications": [found.to_json() for found in self.propagation.replications],
            "cost": self._cost_json(),
        }

    def _cost_json(self) -> dict[str, Any] | None:
        if self.cost is None:
            return None
        by = {f"by_{self.by}": [row.to_json() for row in self.cost.by(self.by)]} if self.by else {}
        return self.cost.to_json() | by

    def page(self) -> bytes:
        """The page of `pyshardy report`.

        Raises:
            ShardyError: The program cannot be partitioned.
        """
        if self.cost is None or self.cost.launches is None:
            return report_bytes([self.propagation], names=[self.name])
        return report_bytes([self.cost.partition], names=[self.name], runs=[(self.cost.launches, self.cost.estimate)])

    def __repr__(self) -> str:
        return str(self)


def analyse(content: bytes, name: str, wishes: Wishes, platform: str = "", kind: str = "") -> Analysis:
    """Analyse a program as JAX dumped it.

    Args:
        content: The text of the program.
        name: Its name.
        wishes: How to analyse it.
        platform: The platform of the script's devices, such as "gpu".
        kind: What JAX calls these devices, such as "TPU v5 lite".

    Raises:
        ShardyError: The program cannot be read or propagated.

    >>> text = b'''sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    ...   %0 = stablehlo.tanh %a : tensor<8xf32>
    ...   return %0 : tensor<8xf32>
    ... }'''
    >>> found = analyse(text, "jit_tanh", Wishes(hardware="h100", compiler="none"))
    >>> str(found.propagation.outputs[0].sharding), found.cost.estimate.hardware
    ('<@mesh, [{"x"}]>', 'NVIDIA H100 SXM')
    """
    module = load_content(content, name, needs_tilings=False)
    hardware = wishes.hardware or chip_of_device(kind)
    notes: list[str] = []
    devices = _devices(content)
    compiler, word = _compiler(wishes.compiler, hardware, platform, devices)
    if word:
        notes.append(word)
    try:
        propagation = propagate(module, compiler=compiler or "none")
    except ShardyError as error:
        if not compiler:
            raise
        notes.append(f"as XLA for CPUs, because {compiler} was asked in vain: {_one_line(error)}")
        propagation = propagate(module, compiler="none")
    if devices > 1 and not propagation.meshes:
        notes.append(f"it runs on {devices} devices, and all of them do the same: nothing in it is sharded")
    notes += lost_names(one.name for one in propagation.inputs)
    estimate = None
    try:
        estimate = cost(partition(propagation), hardware or None)
    except ShardyError as error:
        notes.append(f"no estimate: {_one_line(error)}")
    return Analysis(name, propagation, estimate, tuple(notes), wishes.by, wishes.tables)


def _devices(content: bytes) -> int:
    from pyshardy.watching.inside import read_head

    return read_head(content.decode(errors="replace")).devices


def _compiler(given: str | None, hardware: str, platform: str, devices: int) -> tuple[str, str]:
    """The name of the compiler to ask, empty for none; and a word where it is not the one of the chip."""
    if given is not None:
        return compiler_name(with_chip(given, hardware)), ""
    own = next((one for one in PLATFORMS if hardware in chips_of(one)), _CUDA if platform == _GPU else platform)
    return compiler_for(own, devices, hardware), "" if compiler_for(own, devices, hardware) else stand_in(own, devices)


def chip_of_device(kind: str) -> str:
    """The chip of a device, by what JAX calls it; empty if prices for it are unknown.

    >>> chip_of_device("NVIDIA H100 80GB HBM3"), chip_of_device("TPU v5 lite"), chip_of_device("TPU7x")
    ('h100', 'v5e', 'tpu7x')
    >>> chip_of_device("cpu"), chip_of_device("NVIDIA GH200 480GB")
    ('', '')
    """
    known = chip_names()
    return _TPUS.get(kind) or next((word for word in _WORD.findall(kind.lower()) if word in known), "")


def _one_line(error: ShardyError) -> str:
    return "; ".join(line.strip() for line in str(error).splitlines())
