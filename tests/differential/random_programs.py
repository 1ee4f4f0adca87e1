"""Random StableHLO modules with random shardings, valid by construction, from a seed.

Programs are made op by op from values already there; everything is `f32` but predicates and indices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from random import Random

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_symbol

from .random_shardings import random_mesh, random_sharding

SIZES = (1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16)
Shape = tuple[int, ...]


def tensor(shape: Shape, element: str = "f32") -> str:
    """The text of a tensor type."""
    return "tensor<" + "".join(f"{size}x" for size in shape) + element + ">"


@dataclass(frozen=True)
class Features:
    """What a program may hold; the numbers are probabilities.

    Attributes:
        ops: Number of ops of the main function.
        control_flow: Loops, branches, barriers.
        calls: Calls of shared functions.
        manual: Manual computations.
        constraints: Sharding constraints and propagation barriers.
        groups: Sharding groups.
        annotated: Ops with a sharding of their own.
        priorities: Dimensions with a user priority.
        unreduced: Axes not used by a sharding that are unreduced.
        meshes: Number of meshes.
        without: Names of ops that are left out, such as "reshape".
    """

    ops: int = 15
    control_flow: float = 0.08
    calls: float = 0.06
    manual: float = 0.04
    constraints: float = 0.1
    groups: float = 0.03
    annotated: float = 0.1
    priorities: float = 0.0
    unreduced: float = 0.0
    meshes: int = 1
    without: frozenset[str] = frozenset()


@dataclass
class Writer:
    """Lines of one function under construction and the values that can be used.

    Attributes:
        random: The source of all choices.
        features: What may be made.
        meshes: The meshes by name.
        lines: What has been written.
        values: Name and shape of every usable value.
        taken: Axes that are manual around here.
    """

    random: Random
    features: Features
    meshes: dict[str, Mesh]
    functions: list[str]
    lines: list[str] = field(default_factory=list)
    values: list[tuple[str, Shape]] = field(default_factory=list)
    callees: list[tuple[str, list[Shape], Shape]] = field(default_factory=list)
    counter: int = 0
    depth: int = 0
    taken: frozenset[str] = frozenset()

    def fresh(self) -> str:
        self.counter += 1
        return f"%{'abcdefgh'[min(self.depth, 7)]}{self.counter}"

    def sharding(self, rank: int, **chances: float) -> TensorSharding:
        """A random sharding on a random mesh, without axes that are manual around here."""
        name = self.random.choice(list(self.meshes))
        mesh = Mesh([axis for axis in self.meshes[name].axes if axis[0] not in self.taken])
        chances = {"priorities": self.features.priorities, "unreduced": self.features.unreduced, **chances}
        return random_sharding(self.random, name, mesh, rank, **chances)

    def annotation(self, rank: int) -> str:
        """The attribute of an op that is annotated, or nothing."""
        if self.random.random() >= self.features.annotated:
            return ""
        # Without priorities: the reference crashes on a dead op that has one.
        return f"sdy.sharding = #sdy.sharding_per_value<[{self.sharding(rank, priorities=0.0)}]>"

    def pick(self, want: Callable[[Shape], bool] = lambda shape: True) -> tuple[str, Shape] | None:
        """A random value whose shape is wanted, recent ones more often."""
        found = [value for value in self.values if want(value[1])]
        if not found:
            return None
        return found[max(self.random.randrange(len(found)), self.random.randrange(len(found)))]

    def emit(self, text: str, shape: Shape | None = None, result: str = "", attrs: str = "") -> None:
        """Write an op; `text` has `{attrs}` where an attribute dictionary may stand."""
        inside = ", ".join(part for part in (attrs, self.annotation(len(shape)) if shape is not None else "") if part)
        body = text.replace("{attrs}", f" {{{inside}}}" if inside else "")
        self.lines.append("  " * self.depth + (f"{result} = " if result else "") + body)
        if shape is not None:
            self.values.append((result, shape))

    def generic(self, name: str, operands: list[tuple[str, Shape]], shape: Shape, properties: str = "") -> None:
        """Write an op with one result in generic form."""
        names = ", ".join(operand for operand, _ in operands)
        types = ", ".join(tensor(operand_shape) for _, operand_shape in operands)
        inner = f" <{{{properties}}}>" if properties else ""
        self.emit(f'"stablehlo.{name}"({names}){inner}{{attrs}} : ({types}) -> {tensor(shape)}', shape, self.fresh())

    # Ops

    def unary(self) -> None:
        value = self.pick()
        if value:
            self.generic(self.random.choice(("tanh", "negate", "exponential", "sine")), [value], value[1])

    def binary(self) -> None:
        first = self.pick()
        second = first and self.pick(lambda shape: shape == first[1])
        if first and second:
            self.generic(self.random.choice(("add", "multiply", "maximum")), [first, second], first[1])

    def select(self) -> None:
        first = self.pick()
        second = first and self.pick(lambda shape: shape == first[1])
        if not first or not second:
            return
        predicate = self.fresh()
        shape = first[1]
        self.emit(
            f"stablehlo.compare GT, {first[0]}, {second[0]}{{attrs}} : ({tensor(shape)}, {tensor(shape)}) -> "
            f"{tensor(shape, 'i1')}",
            result=predicate,
        )
        self.emit(
            f"stablehlo.select {predicate}, {second[0]}, {first[0]}{{attrs}} : {tensor(shape, 'i1')}, {tensor(shape)}",
            shape,
            self.fresh(),
        )

    def transpose(self) -> None:
        value = self.pick(lambda shape: len(shape) > 1)
        if value:
            order = list(range(len(value[1])))
            self.random.shuffle(order)
            shape = tuple(value[1][dim] for dim in order)
            self.generic("transpose", [value], shape, f"permutation = array<i64: {', '.join(map(str, order))}>")

    def reshape(self) -> None:
        value = self.pick()
        if value:
            self.generic("reshape", [value], self.random_factorization(prod(value[1])))

    def random_factorization(self, size: int) -> Shape:
        """A shape with this number of elements and at most four dimensions."""
        shape: list[int] = []
        while size > 1 and len(shape) < 3:
            factor = self.random.choice([factor for factor in range(1, size + 1) if size % factor == 0])
            shape.append(factor)
            size //= factor
        shape.append(size)
        return tuple(shape)

    def dot(self) -> None:
        left = self.pick(lambda shape: len(shape) >= 2)
        if not left:
            return
        right = self.pick(lambda shape: len(shape) >= 1 and any(size in left[1] for size in shape))
        if not right:
            return
        pairs = [(i, j) for i, size in enumerate(left[1]) for j, other in enumerate(right[1]) if size == other]
        self.random.shuffle(pairs)
        contracting, batching = [pairs[0]], []
        used = ({pairs[0][0]}, {pairs[0][1]})
        for i, j in pairs[1:]:
            if i not in used[0] and j not in used[1] and self.random.random() < 0.4:
                (batching if self.random.random() < 0.6 else contracting).append((i, j))
                used[0].add(i)
                used[1].add(j)
        shape = tuple(left[1][i] for i, _ in batching)
        shape += tuple(size for i, size in enumerate(left[1]) if i not in used[0])
        shape += tuple(size for j, size in enumerate(right[1]) if j not in used[1])
        if len(shape) > 4:
            return
        lists = [
            [i for i, _ in batching],
            [j for _, j in batching],
            [i for i, _ in contracting],
            [j for _, j in contracting],
        ]
        names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting")
        numbers = ", ".join(f"{name}_dimensions = {list_}" for name, list_ in zip(names, lists))
        self.generic("dot_general", [left, right], shape, f"dot_dimension_numbers = #stablehlo.dot<{numbers}>")

    def broadcast(self) -> None:
        value = self.pick(lambda shape: len(shape) < 4)
        if not value:
            return
        rank = self.random.randint(len(value[1]), 4)
        dims = sorted(self.random.sample(range(rank), len(value[1])))
        shape = [self.random.choice(SIZES) for _ in range(rank)]
        for size, dim in zip(value[1], dims):
            if size != 1 or self.random.random() < 0.5:
                shape[dim] = size
        self.generic("broadcast_in_dim", [value], tuple(shape), f"broadcast_dimensions = array<i64{_list(dims)}>")

    def reduce(self) -> None:
        value = self.pick(lambda shape: len(shape) >= 1)
        if not value:
            return
        dims = sorted(self.random.sample(range(len(value[1])), self.random.randint(1, len(value[1]))))
        init = self.fresh()
        self.emit("stablehlo.constant dense<0.0> : tensor<f32>", result=init)
        shape = tuple(size for dim, size in enumerate(value[1]) if dim not in dims)
        self.emit(
            f"stablehlo.reduce({value[0]} init: {init}) applies stablehlo.add across dimensions = {dims}{{attrs}} : "
            f"({tensor(value[1])}, tensor<f32>) -> {tensor(shape)}",
            shape,
            self.fresh(),
        )

    def concatenate(self) -> None:
        first = self.pick(lambda shape: len(shape) >= 1)
        if not first:
            return
        dim = self.random.randrange(len(first[1]))
        others = [first]
        for _ in range(self.random.randint(0, 2)):
            other = self.pick(
                lambda shape: (
                    len(shape) == len(first[1])
                    and all(a == b or d == dim for d, (a, b) in enumerate(zip(shape, first[1])))
                )
            )
            if other:
                others.append(other)
        shape = list(first[1])
        shape[dim] = sum(value[1][dim] for value in others)
        if shape[dim] <= 48:
            self.generic("concatenate", others, tuple(shape), f"dimension = {dim} : i64")

    def slice(self) -> None:
        value = self.pick(lambda shape: len(shape) >= 1)
        if not value:
            return
        starts, limits, strides = [], [], []
        for size in value[1]:
            start = self.random.choice((0, 0, self.random.randrange(size)))
            starts.append(start)
            limits.append(self.random.choice((size, self.random.randint(start + 1, size))))
            strides.append(self.random.choice((1, 1, 1, 2)))
        shape = tuple(-(-(limit - start) // stride) for start, limit, stride in zip(starts, limits, strides))
        self.generic(
            "slice",
            [value],
            shape,
            f"start_indices = array<i64{_list(starts)}>, limit_indices = array<i64{_list(limits)}>, "
            f"strides = array<i64{_list(strides)}>",
        )

    def pad(self) -> None:
        value = self.pick(lambda shape: len(shape) >= 1)
        if not value:
            return
        low = [self.random.choice((0, 0, 1)) for _ in value[1]]
        high = [self.random.choice((0, 0, 2)) for _ in value[1]]
        zero = self.fresh()
        self.emit("stablehlo.constant dense<0.0> : tensor<f32>", result=zero)
        shape = tuple(size + below + above for size, below, above in zip(value[1], low, high))
        self.generic(
            "pad",
            [value, (zero, ())],
            shape,
            f"edge_padding_low = array<i64{_list(low)}>, edge_padding_high = array<i64{_list(high)}>, "
            f"interior_padding = array<i64{_list([0] * len(low))}>",
        )

    def reverse(self) -> None:
        value = self.pick(lambda shape: len(shape) >= 1)
        if value:
            dims = self.random.sample(range(len(value[1])), self.random.randint(1, len(value[1])))
            self.generic("reverse", [value], value[1], f"dimensions = array<i64{_list(dims)}>")

    def sort(self) -> None:
        value = self.pick(lambda shape: len(shape) >= 1)
        if not value:
            return
        result, dim = self.fresh(), self.random.randrange(len(value[1]))
        self.emit(
            f'"stablehlo.sort"({value[0]}) <{{dimension = {dim} : i64, is_stable = true}}> ({{\n'
            f"  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
            f"    %p = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            f"    stablehlo.return %p : tensor<i1>\n  }}){{attrs}} : ({tensor(value[1])}) -> {tensor(value[1])}",
            value[1],
            result,
        )

    def dynamic_slice(self) -> None:
        value = self.pick(lambda shape: len(shape) >= 1)
        if not value:
            return
        index = self.fresh()
        self.emit("stablehlo.constant dense<0> : tensor<i32>", result=index)
        sizes = [self.random.choice((size, self.random.randint(1, size))) for size in value[1]]
        types = ", ".join([tensor(value[1])] + ["tensor<i32>"] * len(sizes))
        names = ", ".join([value[0]] + [index] * len(sizes))
        self.emit(
            f'"stablehlo.dynamic_slice"({names}) <{{slice_sizes = array<i64{_list(sizes)}>}}>{{attrs}} : ({types}) -> '
            f"{tensor(tuple(sizes))}",
            tuple(sizes),
            self.fresh(),
        )

    def dynamic_update_slice(self) -> None:
        value = self.pick(lambda shape: len(shape) >= 1)
        update = value and self.pick(
            lambda shape: len(shape) == len(value[1]) and all(a <= b for a, b in zip(shape, value[1]))
        )
        if not value or not update:
            return
        index = self.fresh()
        self.emit("stablehlo.constant dense<0> : tensor<i32>", result=index)
        rank = len(value[1])
        types = ", ".join([tensor(value[1]), tensor(update[1])] + ["tensor<i32>"] * rank)
        names = ", ".join([value[0], update[0]] + [index] * rank)
        self.emit(
            f'"stablehlo.dynamic_update_slice"({names}){{attrs}} : ({types}) -> {tensor(value[1])}',
            value[1],
            self.fresh(),
        )

    def gather_rows(self) -> None:
        value = self.pick(lambda shape: len(shape) >= 1)
        if not value:
            return
        count, indices = self.random.choice(SIZES), self.fresh()
        self.emit(f"stablehlo.constant dense<0> : {tensor((count, 1), 'i32')}", result=indices)
        rest = value[1][1:]
        numbers = (
            f"offset_dims = [{', '.join(str(dim + 1) for dim in range(len(rest)))}], collapsed_slice_dims = [0], "
            f"start_index_map = [0], index_vector_dim = 1"
        )
        self.emit(
            f'"stablehlo.gather"({value[0]}, {indices}) <{{dimension_numbers = #stablehlo.gather<{numbers}>, '
            f"slice_sizes = array<i64{_list([1, *rest])}>, indices_are_sorted = false}}>{{attrs}} : "
            f"({tensor(value[1])}, {tensor((count, 1), 'i32')}) -> {tensor((count, *rest))}",
            (count, *rest),
            self.fresh(),
        )

    def constant(self) -> None:
        shape = tuple(self.random.choice(SIZES) for _ in range(self.random.randint(0, 3)))
        value = self.random.choice(("1.0", "2.0"))
        self.emit(f"stablehlo.constant{{attrs}} dense<{value}> : {tensor(shape)}", shape, self.fresh())

    def iota(self) -> None:
        shape = tuple(self.random.choice(SIZES) for _ in range(self.random.randint(1, 3)))
        self.generic("iota", [], shape, f"iota_dimension = {self.random.randrange(len(shape))} : i64")

    def unknown(self) -> None:
        value = self.pick()
        if value:
            self.emit(
                f"stablehlo.custom_call @opaque({value[0]}){{attrs}} : ({tensor(value[1])}) -> {tensor(value[1])}",
                value[1],
                self.fresh(),
            )

    def constraint(self) -> None:
        value = self.pick()
        if value:
            sharding = self.sharding(len(value[1]), is_open=self.random.choice((0.0, 0.6)))
            self.emit(f"sdy.sharding_constraint {value[0]} {sharding} : {tensor(value[1])}", None, name := self.fresh())
            if self.random.random() < 0.7:
                self.values.append((name, value[1]))

    def barrier(self) -> None:
        value = self.pick()
        if value:
            direction = self.random.choice(("FORWARD", "BACKWARD", "NONE"))
            self.emit(
                f"sdy.propagation_barrier {value[0]} allowed_direction={direction} : {tensor(value[1])}",
                None,
                name := self.fresh(),
            )
            self.values.append((name, value[1]))

    def group(self) -> None:
        value = self.pick()
        if value:
            group_id = hash_shape(value[1]) + self.random.randint(0, 1)  # members of a group have equal shapes
            self.emit(f"sdy.sharding_group {value[0]} group_id={group_id} : {tensor(value[1])}")

    def optimization_barrier(self) -> None:
        values = [value for value in (self.pick() for _ in range(self.random.randint(1, 3))) if value]
        if not values:
            return
        result = self.fresh()
        types = ", ".join(tensor(shape) for _, shape in values)
        self.emit(
            f"stablehlo.optimization_barrier {', '.join(name for name, _ in values)} : {types}",
            None,
            f"{result}:{len(values)}" if len(values) > 1 else result,
        )
        for index, (_, shape) in enumerate(values):
            self.values.append((f"{result}#{index}" if len(values) > 1 else result, shape))

    def nested(self, args: list[tuple[str, Shape]], results: list[Shape], terminator: str, ops: int) -> str:
        """The text of a block body with these arguments that ends by returning values of these shapes."""
        inner = Writer(
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

    def of_shape(self, shape: Shape) -> str:
        """A value of this shape, made if there is none."""
        found = self.pick(lambda other: other == shape)
        if found and self.random.random() < 0.9:
            return found[0]
        self.emit(f"stablehlo.constant dense<3.0> : {tensor(shape)}", shape, name := self.fresh())
        return name

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
        inner = Writer(self.random, self.features, self.meshes, self.functions, callees=list(self.callees), depth=1)
        inner.values = [(inner.fresh(), shape) for shape in shapes]
        args = list(inner.values)
        inner.ops(self.random.randint(1, 5))
        if inner.values[-1] in args:
            inner.generic("negate", [inner.values[-1]], inner.values[-1][1])  # identities: docs/differences.md
        returned = inner.values[-1]
        name = f"f{len(self.functions)}"
        arguments = ", ".join(f"{arg}: {tensor(shape)}{_attribute(inner, shape, 0.1)}" for arg, shape in args)
        result = f"({tensor(returned[1])}{_attribute(inner, returned[1], 0.1)})"
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


def hash_shape(shape: Shape) -> int:
    """A number that differs between shapes, the same in every process."""
    number = 1
    for size in shape:
        number = number * 64 + size
    return 2 * number


def _list(numbers: list[int]) -> str:
    return ": " + ", ".join(map(str, numbers)) if numbers else ""


def _attribute(writer: Writer, shape: Shape, chance: float) -> str:
    if writer.random.random() >= chance:
        return ""
    return f" {{sdy.sharding = #sdy.sharding{writer.sharding(len(shape))}}}"


def random_program(seed: int, features: Features = Features()) -> str:
    """The text of a random module."""
    random = Random(seed)
    meshes = {f"m{index}": random_mesh(random) for index in range(features.meshes)}
    if features.meshes > 1 and random.random() < 0.5:
        meshes["m1"] = Mesh(meshes["m0"].axes, reversed(range(meshes["m0"].size)))
    writer = Writer(random, features, meshes, [])
    writer.values = [
        (writer.fresh(), tuple(random.choice(SIZES) for _ in range(random.randint(1, 3))))
        for _ in range(random.randint(2, 4))
    ]
    args = list(writer.values)
    writer.ops(features.ops)
    returned = [writer.pick() for _ in range(random.randint(1, 3))]
    arguments = ", ".join(f"{name}: {tensor(shape)}{_attribute(writer, shape, 0.7)}" for name, shape in args)
    results = ", ".join(f"{tensor(shape)}{_attribute(writer, shape, 0.3)}" for _, shape in returned)
    lines = [f"sdy.mesh {format_symbol(name)} = {mesh}" for name, mesh in meshes.items()]
    lines += [f"func.func @main({arguments}) -> ({results}) {{", *writer.lines]
    lines += [f"  return {', '.join(name for name, _ in returned)} : {', '.join(tensor(s) for _, s in returned)}", "}"]
    return "\n".join([*lines, *writer.functions]) + "\n"
