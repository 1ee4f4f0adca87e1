"""The programs that are timed, by name: modules as MLIR bytecode or text."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from itertools import permutations, product


@cache
def transformer(layers: int) -> bytes:
    """The example training step with this many layers, width 512: about 560 ops per layer."""
    from pyshardy.examples import transformer as example

    stream = BytesIO()
    module = example.lower(example.Config(layers=layers)).compiler_ir("stablehlo")
    module.operation.write_bytecode(stream)
    return stream.getvalue()


_AXES = {"a": 2, "b": 2, "c": 4, "d": 4}
_SIZE = 256
_TYPE = f"tensor<{_SIZE}x{_SIZE}xf32>"


def _shardings() -> list[str]:
    """Different shardings of a matrix: one or two axes on each side, open or closed, of user priorities 0 to 2."""
    sides = [(axis,) for axis in _AXES] + list(permutations(_AXES, 2))
    pairs = [(one, two) for one, two in permutations(sides, 2) if not set(one) & set(two)]
    found = []
    for number, ((one, two), tail) in enumerate(product(pairs, ("", ", ?"))):
        dims = [", ".join(f'"{axis}"' for axis in side) + tail for side in (one, two)]
        found.append(f"[{{{dims[0]}}}p{number % 3}, {{{dims[1]}}}p{(number + 1) % 3}]")
    return found


def conflicts(layers: int) -> str:
    """Layers of matrix products and sums of which every argument is sharded its own way.

    There are as many different shardings as `_shardings` has; the operands of every op conflict.
    """
    shardings = _shardings()
    args, body, value = [], [], "%x"
    for layer in range(layers):
        names = [f"%w{layer}_{index}" for index in range(3)]
        for index, name in enumerate(names):
            sharding = shardings[(3 * layer + index) % len(shardings)]
            args.append(f"{name}: {_TYPE} {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}")
        one, two, three, four = (f"%v{layer}_{index}" for index in range(4))
        body += [
            f"{one} = stablehlo.dot_general {value}, {names[0]}, contracting_dims = [1] x [0]"
            f" : ({_TYPE}, {_TYPE}) -> {_TYPE}",
            f"{two} = stablehlo.add {one}, {names[1]} : {_TYPE}",
            f"{three} = stablehlo.transpose {two}, dims = [1, 0] : ({_TYPE}) -> {_TYPE}",
            f"{four} = stablehlo.multiply {three}, {names[2]} : {_TYPE}",
        ]
        value = four
    mesh = ", ".join(f'"{name}"={size}' for name, size in _AXES.items())
    lines = "\n  ".join(body)
    return (
        f"sdy.mesh @mesh = <[{mesh}]>\n"
        f"func.func @main(%x: {_TYPE}, {', '.join(args)}) -> {_TYPE} {{\n  {lines}\n  return {value} : {_TYPE}\n}}\n"
    )


TWENTY_OPS = conflicts(5)
"""A file of about twenty ops."""
