"""Programs that call back into Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.errors import ShardyError
from pyshardy.ir.functions import main_function, return_op
from pyshardy.ir.module import Module
from pyshardy.runtime.callbacks import drop_tokens

X = np.arange(64, dtype=np.float32).reshape(8, 8)
ENGINES = ("local", "xla")


def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))


def run(function: Callable[..., Any], engine: str) -> np.ndarray:
    """The output of a function of X, sharded along both axes, on eight devices."""
    module = pyshardy.load(function, X, in_shardings=NamedSharding(mesh(), P("x", "y")))
    output = pyshardy.run(pyshardy.partition(module), X, engine=engine)
    return np.asarray(output)


class Recorder:
    """A function that notes what it is called with."""

    def __init__(self, tag: str = "", seen: list[Any] | None = None) -> None:
        self.tag = tag
        self.seen: list[Any] = [] if seen is None else seen

    def __call__(self, value: Any) -> None:
        self.seen.append((self.tag, np.asarray(value)))

    def sizes(self) -> list[tuple[int, ...]]:
        return [value.shape for _, value in self.seen]


def shaped(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_callback_gets_the_whole_value_once(engine: str) -> None:
    seen = Recorder()

    def program(x: jax.Array) -> Any:
        jax.debug.callback(seen, x)
        return x + 1

    np.testing.assert_array_equal(run(program, engine), X + 1)
    assert seen.sizes() == [(8, 8)]
    np.testing.assert_array_equal(seen.seen[0][1], X)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_ordered_callbacks_run_in_order(engine: str) -> None:
    seen: list[Any] = []

    def program(x: jax.Array) -> Any:
        io_callback(Recorder("first", seen), None, x.sum(), ordered=True)
        io_callback(Recorder("second", seen), None, x, ordered=True)
        return io_callback(np.negative, shaped(x), x, ordered=True)

    for _ in range(2):
        np.testing.assert_array_equal(run(program, engine), -X)
    assert [tag for tag, _ in seen] == ["first", "second"] * 2
    assert [value.sum() for _, value in seen] == [X.sum()] * 4


@pytest.mark.parametrize("engine", ENGINES)
def test_functions_are_told_apart_also_when_called_twice(engine: str) -> None:
    def program(x: jax.Array) -> Any:
        add = jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) + 1, shaped(x), x))
        double = jax.pure_callback(lambda v: np.asarray(v) * 2, shaped(x), add(x))
        return add(double)

    np.testing.assert_array_equal(run(program, engine), (X + 1) * 2 + 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_devices_in_shard_map_call_for_themselves(engine: str) -> None:
    seen = Recorder()

    def body(x: jax.Array) -> Any:
        jax.debug.callback(seen, x)
        return jax.pure_callback(lambda v: np.asarray(v) * 2, shaped(x), x)

    def program(x: jax.Array) -> Any:
        return jax.shard_map(body, mesh=mesh(), in_specs=P("x", "y"), out_specs=P("x", "y"))(x)

    np.testing.assert_array_equal(run(program, engine), X * 2)
    assert seen.sizes() == [(2, 4)] * 8
    assert sorted(value[0, 0] for _, value in seen.seen) == sorted(X[::2, ::4].ravel())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_partitioned_callback_gets_the_part_of_every_device(engine: str) -> None:
    seen = Recorder()

    def program(x: jax.Array) -> Any:
        jax.debug.callback(seen, x, partitioned=True)
        return x * 2

    np.testing.assert_array_equal(run(program, engine), X * 2)
    assert seen.sizes() == [(2, 4)] * 8
    assert sorted(value[0, 0] for _, value in seen.seen) == sorted(X[::2, ::4].ravel())


@pytest.mark.parametrize("engine", ENGINES)
def test_printing(engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    def program(x: jax.Array) -> Any:
        jax.debug.print("the sum is {total}", total=x.sum())
        return x

    run(program, engine)
    assert capfd.readouterr().out.count("the sum is 2016.0") == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_an_exception_ends_the_run_and_not_the_process(engine: str) -> None:
    fails = [True]

    def give_up(value: Any) -> Any:
        if fails[0]:
            raise ValueError("no idea")
        return np.asarray(value)

    def program(x: jax.Array) -> Any:
        return jax.pure_callback(give_up, shaped(x), x)

    module = pyshardy.load(program, X, in_shardings=NamedSharding(mesh(), P("x", "y")))
    partition = pyshardy.partition(module)
    with pytest.raises(ShardyError) as caught:
        pyshardy.run(partition, X, engine=engine)
    assert str(caught.value) == (
        "calling back into Python: got ValueError: no idea, needed a function that does not fail"
    )
    assert isinstance(caught.value.__cause__, ValueError)
    fails[0] = False
    output = pyshardy.run(partition, X, engine=engine)
    np.testing.assert_array_equal(np.asarray(output), X)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_function_that_is_not_there_any_more_is_refused(engine: str) -> None:
    module = pyshardy.load(lambda x: jax.pure_callback(np.tanh, shaped(x), x), X)
    partition = pyshardy.partition(pyshardy.load(module.text()))
    with pytest.raises(ShardyError, match="a call back into Python, needed a Python function that this process has"):
        pyshardy.run(partition, X, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_without_outputs_is_refused(engine: str) -> None:
    def program(x: jax.Array) -> tuple[()]:
        jax.debug.callback(Recorder(), x)
        return ()

    partition = pyshardy.partition(pyshardy.load(program, X, in_shardings=NamedSharding(mesh(), P("x"))))
    with pytest.raises(ShardyError, match="calls back into Python, and no outputs"):
        pyshardy.run(partition, X, engine=engine)


def test_tokens_leave_the_border_of_a_program() -> None:
    module = Module.parse("""func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 1 : i32}, %t: !stablehlo.token,
        %b: tensor<3xf32> {x.y = 1 : i32}) -> (!stablehlo.token, tensor<3xf32> {x.z = 2 : i32}) {
      %0 = stablehlo.after_all %t : !stablehlo.token
      return %0, %b : !stablehlo.token, tensor<3xf32>
    }""")
    root = module.copy_root()
    with module.context:
        drop_tokens(root)
    changed = module.with_root(root)
    changed.verify()
    main = main_function(changed.root)
    assert [str(value.type) for value in main.region.block.args] == ["tensor<2xf32>", "tensor<3xf32>"]
    assert [str(value.type) for value in return_op(main).operands] == ["tensor<3xf32>"]
    assert [op.name for op in main.region.block] == ["stablehlo.create_token", "stablehlo.after_all", "func.return"]
    assert main.attrs["arg_attrs"][0] == {}
    assert "x.y" in main.attrs["arg_attrs"][1]
    assert "x.z" in main.attrs["res_attrs"][0]
