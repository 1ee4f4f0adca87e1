from __future__ import annotations

from pyshardy.costing.donation import with_aliases
from pyshardy.costing.program import Block, Input, Program, Tensor

SMALL, LARGE = Tensor((4,), "f32", 16), Tensor((8,), "f32", 32)


def program(*inputs: Input) -> Program:
    """Arguments of 16, 32 and 16 bytes; results of 32, 16 and 16."""
    tensors = (SMALL, LARGE, SMALL, LARGE, SMALL, SMALL)
    return Program(tensors, (Block((0, 1, 2), (), (3, 4, 5)),), 0, inputs, ("a", "b", "c"))


def aliases(*inputs: Input) -> list[int | None]:
    return [entry.alias for entry in with_aliases(program(*inputs)).inputs]


def test_donated_arguments_give_their_memory_to_results_of_their_size() -> None:
    donated = Input("x", None, True)
    assert aliases(donated, donated, donated) == [1, 0, 2]
    assert aliases(Input("x"), donated, donated) == [None, 0, 1]


def test_what_is_known_stays() -> None:
    assert aliases(Input("x", 2, True), Input("y"), Input("z", None, True)) == [2, None, 1]


def test_no_result_is_taken_twice() -> None:
    donated = Input("x", None, True)
    assert aliases(Input("x", 1, True), donated, donated) == [1, 0, 2]


def test_a_result_of_another_size_takes_nothing() -> None:
    assert aliases(Input("x", 0, True), Input("y", 1, True), Input("z")) == [1, 0, None]
