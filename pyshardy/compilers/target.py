"""Names of compilers, such as `tpu:v5e:2x4`, and the devices that they stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from pyshardy.core.options import did_you_mean
from pyshardy.errors import UsageError

NO_COMPILER = "none"
"""The name that asks no compiler."""
_DOING = "choosing a compiler"
_EXAMPLES = "tpu:v5e:2x4, cuda:h100:8 or cpu, or none"
_FLAT = {1: "1x1", 4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
_CUBES = {
    1: "1x1x1", 4: "2x2x1", 8: "2x2x2", 16: "2x2x4", 32: "2x4x4", 64: "4x4x4", 128: "4x4x8", 256: "4x8x8",
    512: "8x8x8", 1024: "8x8x16", 2048: "8x16x16", 4096: "16x16x16",
}  # fmt: skip
"""The topologies of TPUs by their number of chips, as clouds offer them."""


@dataclass(frozen=True, slots=True)
class _Chip:
    """A chip that a compiler knows.

    Attributes:
        platform: The platform of the compiler.
        topologies: The topologies of TPUs by their number of chips.
        cores: The number of devices on a chip.
        per_host: The number of GPUs of a host.
    """

    platform: str
    topologies: dict[int, str]
    cores: int = 1
    per_host: int = 8


_CHIPS = {
    "v4": _Chip("tpu", _CUBES, cores=2),
    "v5e": _Chip("tpu", _FLAT),
    "v5p": _Chip("tpu", _CUBES),
    "v6e": _Chip("tpu", _FLAT),
    "tpu7x": _Chip("tpu", _CUBES, cores=2),
    "a100": _Chip("cuda", {}),
    "h100": _Chip("cuda", {}),
    "h200": _Chip("cuda", {}),
    "b200": _Chip("cuda", {}),
    "gb200": _Chip("cuda", {}, per_host=4),
}
"""The chips by the names of `--hardware`."""
PLATFORMS = ("tpu", "cuda", "cpu")
USUAL = {"tpu": "v5e", "cuda": "h100"}
"""The chip to compile for where none is named."""


@dataclass(frozen=True, slots=True)
class CompilerTarget:
    """A compiler with the devices that it compiles for.

    Attributes:
        platform: "tpu", "cuda" or "cpu".
        chip: The chip, by its name in `--hardware`; empty for CPUs.
        topology: The topology of one slice, in the compiler's notation: "2x4" for TPUs, slices x hosts x GPUs for GPUs.
        slices: The number of TPU slices.
        devices: The number of devices.
    """

    platform: str
    chip: str
    topology: str
    slices: int
    devices: int

    def __str__(self) -> str:
        """The devices in words.

        >>> str(find_target("tpu:v5e", 8))
        '8 x v5e (2x4)'
        """
        if self.platform == "cpu":
            return f"{self.devices} CPU devices"
        if self.platform == "cuda":
            return f"{self.devices} x {self.chip}"
        slices = "" if self.slices == 1 else f"{self.slices} slices of "
        return f"{self.devices} x {self.chip} ({slices}{self.topology})"


def chips_of(platform: str) -> tuple[str, ...]:
    """The chips of a platform, by their names in `--hardware`.

    >>> chips_of("tpu")
    ('v4', 'v5e', 'v5p', 'v6e', 'tpu7x')
    """
    return tuple(chip for chip, one in _CHIPS.items() if one.platform == platform)


def compiler_name(text: str) -> str:
    """A compiler's name as it was given; empty for "none".

    Raises:
        UsageError: It names no compiler that pyshardy knows.

    >>> compiler_name("cuda:h100:8"), compiler_name("tpu"), compiler_name("none")
    ('cuda:h100:8', 'tpu:v5e', '')
    """
    if text in ("", NO_COMPILER):
        return ""
    name = with_chip(text, "")
    _parts(name)
    return name


def with_chip(name: str, chip: str) -> str:
    """A compiler's name, with a chip added if it has only the platform: the given chip if that is of the platform.

    >>> with_chip("tpu", "v5p"), with_chip("tpu", "h100"), with_chip("cuda:h100:8", "v5p")
    ('tpu:v5p', 'tpu:v5e', 'cuda:h100:8')
    """
    chips = chips_of(name)
    return f"{name}:{chip if chip in chips else USUAL[name]}" if chips else name


def chip_of(name: str) -> str:
    """The chip of a compiler's name, by its name in `--hardware`; empty for CPUs and for no compiler.

    >>> chip_of("tpu:v5e:2x4"), chip_of("cpu"), chip_of("")
    ('v5e', '', '')
    """
    chip = name.split(":")[1] if ":" in name else ""
    return chip if chip in _CHIPS else ""


def find_target(text: str, devices: int) -> CompilerTarget:
    """The compiler of a name, for a number of devices.

    Args:
        text: The platform, the chip and the topology, such as `tpu:v5e:2x4`, `tpu:v5e:2*16x16` for two slices,
            `cuda:h100:8`, `cpu`. Without a topology, the number of devices decides it.
        devices: The number of devices of the program's mesh.

    Raises:
        UsageError: The name is wrong, or the topology has another number of devices.

    >>> find_target("tpu:v5p", 16).topology
    '2x2x4'
    >>> str(find_target("tpu:v5e:2*2x4", 16))
    '16 x v5e (2 slices of 2x4)'
    """
    platform, name, given = _parts(text)
    if platform == "cpu":
        return _checked(text, CompilerTarget("cpu", "", given or str(devices), 1, int(given or devices)), devices)
    chip = _CHIPS[name]
    if platform == "cuda":
        return _checked(text, _gpus(name, chip, int(given or devices)), devices)
    target = _listed(name, chip, devices) if not given else _tpus(name, chip, given)
    if target is None:
        listed = ", ".join(str(count * chip.cores) for count in chip.topologies)
        raise UsageError(
            _DOING,
            got=f"{text} for {devices} devices",
            needed=f"a number of devices that a slice of {name} has: {listed}, or a multiple of the last",
        )
    return _checked(text, target, devices)


def _parts(text: str) -> tuple[str, str, str]:
    """The platform, the chip and the topology of a name; the last may be empty."""
    platform, _, rest = text.partition(":")
    name, _, given = rest.partition(":")
    if platform not in PLATFORMS:
        close = did_you_mean(platform, PLATFORMS)
        raise UsageError(_DOING, got=repr(text), needed=_EXAMPLES, hint=close and close + text[len(platform) :])
    if platform == "cpu":
        if (rest and not rest.isdecimal()) or rest == "0":
            raise UsageError(_DOING, got=repr(text), needed="cpu, or cpu:8 for eight devices")
        return platform, "", rest
    known = chips_of(platform)
    if name not in known:
        hint = did_you_mean(name, known)
        needed = f"{platform}:CHIP or {platform}:CHIP:TOPOLOGY, where CHIP is one of {', '.join(known)}"
        raise UsageError(_DOING, got=repr(text), needed=needed, hint=hint and f"{platform}:{hint}")
    shape = r"[1-9]\d{0,5}" if platform == "cuda" else r"(?:[1-9]\d{0,3}\*)?[1-9]\d{0,3}(?:x[1-9]\d{0,3}){1,2}"
    if given and re.fullmatch(shape, given) is None:
        needed = "a number of GPUs, such as cuda:h100:8" if platform == "cuda" else "a topology, such as tpu:v5e:2x4"
        raise UsageError(_DOING, got=repr(text), needed=needed)
    return platform, name, given


def _gpus(name: str, chip: _Chip, count: int) -> CompilerTarget:
    hosts = max(1, -(-count // chip.per_host))
    return CompilerTarget("cuda", name, f"1x{hosts}x{count // hosts}", 1, hosts * (count // hosts))


def _tpus(name: str, chip: _Chip, given: str) -> CompilerTarget:
    slices, _, topology = given.rpartition("*")
    count = int(slices or 1)
    return CompilerTarget("tpu", name, topology, count, count * chip.cores * prod(map(int, topology.split("x"))))


def _listed(name: str, chip: _Chip, devices: int) -> CompilerTarget | None:
    """The usual topology with a number of devices; None if there is none."""
    chips = devices // chip.cores
    if chips in chip.topologies:
        return CompilerTarget("tpu", name, chip.topologies[chips], 1, chips * chip.cores)
    most = max(chip.topologies)
    if chips % most or not chips:
        return None
    return CompilerTarget("tpu", name, chip.topologies[most], chips // most, chips * chip.cores)


def _checked(text: str, target: CompilerTarget, devices: int) -> CompilerTarget:
    if target.devices != devices:
        platform, name, _ = _parts(text)
        try:
            fits = find_target(f"{platform}:{name}".rstrip(":"), devices)
            hint = f"{platform}:{name}:{fits.topology}" if platform == "tpu" else f"{platform}:{name}".rstrip(":")
        except UsageError:
            hint = None
        needed = f"{devices} devices, those of the program's mesh"
        raise UsageError(_DOING, got=f"{text}, which has {target.devices} devices", needed=needed, hint=hint)
    return target
