"""The ops of random programs, each made from values already there."""

from __future__ import annotations

from math import prod

from .random_writer import SIZES, Shape, Writer, tensor


class OpWriter(Writer):
    """A writer with a method for every kind of op without a region of its own."""

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
        self.generic(
            "broadcast_in_dim", [value], tuple(shape), f"broadcast_dimensions = array<i64{numbers_text(dims)}>"
        )

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
            f"start_indices = array<i64{numbers_text(starts)}>, limit_indices = array<i64{numbers_text(limits)}>, "
            f"strides = array<i64{numbers_text(strides)}>",
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
            f"edge_padding_low = array<i64{numbers_text(low)}>, edge_padding_high = array<i64{numbers_text(high)}>, "
            f"interior_padding = array<i64{numbers_text([0] * len(low))}>",
        )

    def reverse(self) -> None:
        value = self.pick(lambda shape: len(shape) >= 1)
        if value:
            dims = self.random.sample(range(len(value[1])), self.random.randint(1, len(value[1])))
            self.generic("reverse", [value], value[1], f"dimensions = array<i64{numbers_text(dims)}>")

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
            f'"stablehlo.dynamic_slice"({names}) <{{slice_sizes = array<i64{numbers_text(sizes)}>}}>{{attrs}} : ({types}) -> '
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
            f"slice_sizes = array<i64{numbers_text([1, *rest])}>, indices_are_sorted = false}}>{{attrs}} : "
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


def hash_shape(shape: Shape) -> int:
    """A number that differs between shapes, the same in every process."""
    number = 1
    for size in shape:
        number = number * 64 + size
    return 2 * number


def numbers_text(numbers: list[int]) -> str:
    """The items of an `array<i64...>`, with the colon before them."""
    return ": " + ", ".join(map(str, numbers)) if numbers else ""
