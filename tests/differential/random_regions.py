"""Loops, branches, calls, manual computations: what holds ops of its own, and the choice among all ops."""

from __future__ import annotations

from collections.abc import Callable

from pyshardy.core.mesh import Mesh
from pyshardy.core.text import format_symbol

from .random_ops import OpWriter
from .random_shardings import random_sharding
from .random_writer import Shape, tensor


class ProgramWriter(OpWriter):
    """A writer with a method for every kind of op."""

    def nested(self, args: list[tuple[str, Shape]], results: list[Shape], terminator: str, ops: int) -> str:
        """The text of a block body with these arguments that ends by returning values of these shapes."""
        inner = ProgramWriter(
            self.random,
            self.features,
            self.meshes,
            self.functions,
            callees=self.callees,
            values=[*self.values, *args] if terminator != "sdy.return" else list(args),
            counter=self.counter,
            depth=self.depth + 1,
            taken=self.taken,
        )
        inner.ops(ops)
        returned = [inner.of_shape(shape) for shape in results]
        self.counter = inner.counter
        types = ", ".join(map(tensor, results))
        tail = f" {', '.join(returned)} : {types}" if returned else ""
        return "\n".join([*inner.lines, "  " * inner.depth + terminator + tail])

    def while_loop(self) -> None:
        values = [value for value in (self.pick() for _ in range(self.random.randint(1, 2))) if value]
        if self.depth > 1 or not values:
            return
        start, result, args = self.fresh(), self.fresh(), [(self.fresh(), shape) for _, shape in values]
        index = self.fresh()
        self.emit("stablehlo.constant dense<0> : tensor<i32>", result=start)
        body = self.nested(args, [shape for _, shape in values], "stablehlo.return", self.random.randint(1, 4))
        head, _, last = body.rpartition("stablehlo.return ")
        names, _, types = last.partition(" : ")
        bound = f"{index} = {start}, " + ", ".join(f"{arg} = {name}" for (arg, _), (name, _) in zip(args, values))
        all_types = ", ".join(["tensor<i32>", *(tensor(shape) for _, shape in values)])
        self.emit(
            f"stablehlo.while({bound}) : {all_types}\n cond {{\n"
            f"  %l{index[1:]} = stablehlo.constant dense<3> : tensor<i32>\n"
            f"  %p{index[1:]} = stablehlo.compare LT, {index}, %l{index[1:]} : "
            f"(tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            f"  stablehlo.return %p{index[1:]} : tensor<i1>\n }} do {{\n{head}stablehlo.return {index}, {names} : "
            f"tensor<i32>, {types}\n }}",
            None,
            f"{result}:{len(values) + 1}",
        )
        for number, (_, shape) in enumerate(values):
            self.values.append((f"{result}#{number + 1}", shape))

    def case(self) -> None:
        value = self.pick()
        if self.depth > 1 or not value:
            return
        branch, result = self.fresh(), self.fresh()
        self.emit("stablehlo.constant dense<0> : tensor<i32>", result=branch)
        bodies = [self.nested([], [value[1]], "stablehlo.return", self.random.randint(0, 3)) for _ in range(2)]
        regions = ", ".join(f"{{\n{body}\n }}" for body in bodies)
        self.emit(f'"stablehlo.case"({branch}) ({regions}) : (tensor<i32>) -> {tensor(value[1])}', None, result)
        self.values.append((result, value[1]))

    def call(self) -> None:
        if self.callees and self.random.random() < 0.6:
            name, args, result_shape = self.random.choice(self.callees)
        else:
            name, args, result_shape = self.new_function()
        operands = [self.of_shape(shape) for shape in args]
        types = ", ".join(map(tensor, args))
        self.emit(
            f"func.call {format_symbol(name)}({', '.join(operands)}){{attrs}} : ({types}) -> {tensor(result_shape)}",
            result_shape,
            self.fresh(),
        )

    def new_function(self) -> tuple[str, list[Shape], Shape]:
        shapes = [value[1] for value in (self.pick() for _ in range(self.random.randint(1, 2))) if value] or [(4,)]
        inner = ProgramWriter(
            self.random, self.features, self.meshes, self.functions, callees=list(self.callees), depth=1
        )
        inner.values = [(inner.fresh(), shape) for shape in shapes]
        args = list(inner.values)
        inner.ops(self.random.randint(1, 5))
        if inner.values[-1] in args:
            inner.generic("negate", [inner.values[-1]], inner.values[-1][1])  # identities: docs/differences.md
        returned = inner.values[-1]
        name = f"f{len(self.functions)}"
        arguments = ", ".join(f"{arg}: {tensor(shape)}{inner.attribute(shape, 0.1)}" for arg, shape in args)
        result = f"({tensor(returned[1])}{inner.attribute(returned[1], 0.1)})"
        self.functions.append(
            f"func.func private @{name}({arguments}) -> {result} {{\n"
            + "\n".join(inner.lines)
            + f"\n  return {returned[0]} : {tensor(returned[1])}\n}}"
        )
        self.callees.append((name, shapes, returned[1]))
        return self.callees[-1]

    def manual_computation(self) -> None:
        name = self.random.choice(list(self.meshes))
        free = [axis for axis in self.meshes[name].axes if axis[0] not in self.taken]
        value = self.pick()
        if self.depth > 1 or not value or not free:
            return
        manual, size = self.random.choice(free)
        rest = Mesh([axis for axis in free if axis[0] != manual])
        dims = [dim for dim, extent in enumerate(value[1]) if extent % size == 0]
        dim = self.random.choice(dims) if dims and self.random.random() < 0.8 else None
        local = tuple(extent // size if index == dim else extent for index, extent in enumerate(value[1]))
        outer = []
        for _ in range(2):
            free_part = random_sharding(self.random, name, rest, len(local), replicated=0.0, sub_axes=0.0)
            texts = [str(one) for one in free_part.dims]
            if dim is not None:
                texts[dim] = "{" + f'"{manual}"' + (", " if texts[dim] != "{}" else "") + texts[dim][1:]
            replicated = "" if dim is not None else f', replicated={{"{manual}"}}'
            outer.append(f"<@{name}, [{', '.join(texts)}]{replicated}>")
        arg, result = self.fresh(), self.fresh()
        saved, self.taken = self.taken, self.taken | {manual}
        body = self.nested([(arg, local)], [local], "sdy.return", self.random.randint(1, 4))
        self.taken = saved
        self.emit(
            f"sdy.manual_computation({value[0]}) in_shardings=[{outer[0]}] out_shardings=[{outer[1]}] "
            f'manual_axes={{"{manual}"}} ({arg}: {tensor(local)}) {{\n{body}\n }} : '
            f"({tensor(value[1])}) -> {tensor(value[1])}",
            None,
            result,
        )
        self.values.append((result, value[1]))

    def ops(self, count: int) -> None:
        """Write about this many random ops."""
        features = self.features
        plain = [
            self.unary, self.unary, self.binary, self.binary, self.binary, self.select, self.transpose, self.reshape,
            self.dot, self.dot, self.broadcast, self.broadcast, self.reduce, self.concatenate, self.slice, self.pad,
            self.reverse, self.sort, self.dynamic_slice, self.dynamic_update_slice, self.gather_rows, self.constant,
            self.iota, self.unknown,
        ]  # fmt: skip
        plain = [make for make in plain if make.__name__ not in features.without]
        special: list[tuple[float, list[Callable[[], None]]]] = [
            (features.control_flow, [self.while_loop, self.case, self.optimization_barrier]),
            (features.calls if not self.taken else 0.0, [self.call]),
            (features.manual, [self.manual_computation]),
            (features.constraints, [self.constraint, self.constraint, self.barrier]),
            (features.groups if self.depth == 0 else 0.0, [self.group]),
        ]
        for _ in range(count):
            makers = plain
            for chance, candidates in special:
                if self.random.random() < chance:
                    makers = candidates
                    break
            self.random.choice(makers)()
