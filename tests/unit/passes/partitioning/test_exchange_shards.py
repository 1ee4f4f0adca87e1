"""What is sent where ops move data between shards: no more permutations, and no more bytes, on more devices."""

from __future__ import annotations

import re

import pytest

import pyshardy
from pyshardy.costing.traffic import Traffic

_ROWS = 512
_COUNTS = 8, 64, 512


def _type(*sizes: int) -> str:
    return f"tensor<{'x'.join(map(str, (_ROWS, *sizes)))}xf32>"


class _Program:
    """The text of a program whose tensors are all sharded along the second dimension, or another one.

    Args:
        count: Number of devices.
        args: Types of the inputs.
    """

    def __init__(self, count: int, *args: str, dim: int = 1) -> None:
        self.count, self.lines, self.last, self.type = count, list[str](), "%a0", args[0]
        self.args = ", ".join(f"%a{number}: {type} {self._port(type, dim)}" for number, type in enumerate(args))

    def sharding(self, type: str, dim: int) -> str:
        """How a tensor of a type is sharded along a dimension; every dimension but the element type has an x."""
        return ", ".join(
            '{"x"}' if index == dim else "{}" for index in range(type.removesuffix("xf32>").count("x") + 1)
        )

    def _port(self, type: str, dim: int) -> str:
        return f"{{sdy.sharding = #sdy.sharding<@mesh, [{self.sharding(type, dim)}]>}}"

    def do(self, op: str, before: str, type: str, dim: int = 1) -> _Program:
        """One more op."""
        name = f"%{len(self.lines)}"
        mark = f"{{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{self.sharding(type, dim)}]>]>}}"
        self.lines.append(f"{name} = stablehlo.{op} {mark} : ({before}) -> {type}")
        self.last, self.type = name, type
        return self

    def text(self, dim: int | None = 1) -> str:
        """The module; its result is whole if no dimension is given."""
        result = self.type if dim is None else f"({self.type} {self._port(self.type, dim)})"
        body = "\n".join([*self.lines, f"return {self.last} : {self.type}"])
        return f'sdy.mesh @mesh = <["x"={self.count}]>\nfunc.func @main({self.args}) -> {result} {{\n{body}\n}}'

    def traffic(self, dim: int | None = 1) -> Traffic:
        """What is sent."""
        return pyshardy.partition(pyshardy.load(self.text(dim)), view="stablehlo").traffic


def _slice(n: int, first: int) -> Traffic:
    before = _type(96 * n)
    cut = f"slice %a0 [0:{_ROWS}, {first}:{first + 32 * n}]"
    return _Program(n, before).do(cut, before, _type(32 * n)).traffic()


def _join(n: int) -> Traffic:
    before = _type(32 * n)
    join = "concatenate %a0, %a1, %a2, dim = 1"
    return _Program(n, *[before] * 3).do(join, ", ".join([before] * 3), _type(96 * n)).traffic()


def _roll(n: int) -> Traffic:
    whole, rest, head = _type(96 * n), _type(96 * n - 7), _type(7)
    program = _Program(n, whole).do(f"slice %a0 [0:{_ROWS}, 7:{96 * n}]", whole, rest)
    return (
        program.do(f"slice %a0 [0:{_ROWS}, 0:7]", whole, head)
        .do("concatenate %0, %1, dim = 1", f"{rest}, {head}", whole)
        .traffic()
    )


def _pad(n: int) -> Traffic:
    before, scalar = _type(32 * n), "tensor<f32>"
    program = _Program(n, before)
    program.lines.append(f"%0 = stablehlo.constant dense<1.0> : {scalar}")
    pad = f"pad %a0, %0, low = [0, {32 * n}], high = [0, {32 * n}], interior = [0, 0]"
    return program.do(pad, f"{before}, {scalar}", _type(96 * n)).traffic()


def _reverse(n: int) -> Traffic:
    whole, part, scalar = _type(96 * n), _type(96 * n - 5), "tensor<f32>"
    program = _Program(n, whole).do(f"slice %a0 [0:{_ROWS}, 0:{96 * n - 5}]", whole, part)
    mark = f"{{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{program.sharding(part, 1)}]>]>}}"
    program.lines.append(f"%1 = stablehlo.reverse %0, dims = [1] {mark} : {part}")
    program.lines.append(f"%2 = stablehlo.constant dense<1.0> : {scalar}")
    pad = "pad %1, %2, low = [0, 0], high = [0, 5], interior = [0, 0]"
    return program.do(pad, f"{part}, {scalar}", whole).traffic()


def _split(n: int) -> Traffic:
    before = _type(96 * n)
    return _Program(n, before).do("reshape %a0", before, _type(3, 32 * n), dim=2).traffic(2)


def _merge(n: int) -> Traffic:
    before = _type(3, 32 * n)
    return _Program(n, before, dim=2).do("reshape %a0", before, _type(96 * n)).traffic()


def _narrow(n: int) -> Traffic:
    before = _type(96 * n)
    return _Program(n, before).do(f"slice %a0 [0:{_ROWS}, 8:{8 + n}]", before, _type(n)).traffic()


def _one(n: int) -> Traffic:
    before = _type(96 * n)
    return _Program(n, before).do(f"slice %a0 [0:{_ROWS}, 8:9]", before, _type(1)).traffic(None)


_CASES = {
    "slice": (lambda n: _slice(n, 32 * n), 3, (393_216, 327_680, 524_288)),
    "slice elsewhere": (lambda n: _slice(n, 37), 4, (327_680, 317_440, 327_680)),
    "concatenate": (_join, 3, (344_064, 387_072, 392_448)),
    "roll": (_roll, 1, (14_336, 14_336, 14_336)),
    "pad": (_pad, 3, (131_072, 196_608, 196_608)),
    "reverse": (_reverse, 2, (206_848, 206_848, 206_848)),
    "split": (_split, 3, (1_376_256, 12_386_304, 100_466_688)),
    "merge": (_merge, 3, (1_376_256, 12_386_304, 100_466_688)),
    "narrow slice": (_narrow, 1, (14_336, 129_024, 1_800_192)),
    "one element for all": (_one, 1, (3_584, 4_032, 4_088)),
}
"""What is partitioned, the largest number of collectives, and the bytes that XLA's partitioner of jaxlib 0.12.0.1 sends
on 8, 64 and 512 devices (`pyshardy.api.run.compiled_collectives`), every device in all."""


@pytest.mark.slow_cases("concatenate", "merge")
@pytest.mark.parametrize("name", _CASES)
def test_neither_collectives_nor_bytes_grow(name: str) -> None:
    make, most, bytes_of_xla = _CASES[name]
    for count, xla in zip(_COUNTS, bytes_of_xla):
        found = make(count)
        assert 0 < found.sent_bytes_per_device <= xla, count
        assert 0 < sum(kind.count for kind in found.kinds) <= most, count
        assert "all_gather" not in {kind.kind for kind in found.kinds}


def test_without_exchanges_more_is_sent() -> None:
    """The figures above can be missed."""
    before = _type(96 * 8)
    program = _Program(8, before).do(f"slice %a0 [0:{_ROWS}, 256:512]", before, _type(256))
    options = pyshardy.PartitionOptions(halo_exchange=False)
    found = pyshardy.partition(pyshardy.load(program.text()), options, view="stablehlo").traffic
    assert found.sent_bytes_per_device > _CASES["slice"][2][0]


def test_more_devices_than_are_listed_are_left_alone() -> None:
    count = 2**15
    before = _type(2 * count)
    program = _Program(count, before, before).do(
        "concatenate %a0, %a1, dim = 1", f"{before}, {before}", _type(4 * count)
    )
    assert "sdy.manual_computation" not in _after(program.text())
    few = _Program(64, _type(128), _type(128)).do(
        "concatenate %a0, %a1, dim = 1", ", ".join([_type(128)] * 2), _type(256)
    )
    assert "sdy.manual_computation" in _after(few.text())


@pytest.mark.parametrize("axes", ['"y"=8', '"y"=2, "z"=4'])
def test_equal_layouts_on_two_meshes_send_nothing(axes: str) -> None:
    names = ", ".join(re.findall(r'"."', axes))
    type = "tensor<16x8xf32>"
    first, second = (
        f"{{sdy.sharding = #sdy.sharding<{where}, {{}}]>}}" for where in ('@a, [{"x"}', f"@b, [{{{names}}}")
    )
    text = f"""sdy.mesh @a = <["x"=8]>
    sdy.mesh @b = <[{axes}]>
    func.func @main(%x: {type} {first}, %y: {type} {second}) -> ({type} {second}) {{
      %0 = stablehlo.add %x, %y : {type}
      return %0 : {type}
    }}"""
    assert pyshardy.partition(pyshardy.load(text), view="stablehlo").traffic.collectives == ()
    reversed_ = text.replace(f"[{axes}]", f"[{axes}], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]")
    assert pyshardy.partition(pyshardy.load(reversed_), view="stablehlo").traffic.sent_bytes_per_device > 0


def _after(text: str) -> str:
    return pyshardy.run_pipeline(pyshardy.load(text), "pyshardy-exchange-shards").text()
