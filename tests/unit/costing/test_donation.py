from __future__ import annotations

from pyshardy.costing.donation import donatable_bytes, donated_inputs, donation_note, with_aliases
from pyshardy.costing.program import CostBlock, CostInput, CostProgram, CostTensor

SMALL, LARGE = CostTensor((4,), "f32", 16), CostTensor((8,), "f32", 32)


def program(*inputs: CostInput) -> CostProgram:
    """Arguments of 16, 32 and 16 bytes; results of 32, 16 and 16."""
    tensors = (SMALL, LARGE, SMALL, LARGE, SMALL, SMALL)
    return CostProgram(tensors, (CostBlock((0, 1, 2), (), (3, 4, 5)),), 0, inputs, ("a", "b", "c"))


def aliases(*inputs: CostInput) -> list[int | None]:
    return [entry.alias for entry in with_aliases(program(*inputs)).inputs]


def test_donated_arguments_give_their_memory_to_results_of_their_size() -> None:
    donated = CostInput("x", None, True)
    assert aliases(donated, donated, donated) == [1, 0, 2]
    assert aliases(CostInput("x"), donated, donated) == [None, 0, 1]


def test_what_is_known_stays() -> None:
    assert aliases(CostInput("x", 2, True), CostInput("y"), CostInput("z", None, True)) == [2, None, 1]


def test_no_result_is_taken_twice() -> None:
    donated = CostInput("x", None, True)
    assert aliases(CostInput("x", 1, True), donated, donated) == [1, 0, 2]


def test_a_result_of_another_size_takes_nothing() -> None:
    assert aliases(CostInput("x", 0, True), CostInput("y", 1, True), CostInput("z")) == [1, 0, None]


def test_what_donation_would_save() -> None:
    assert donatable_bytes(program(CostInput("x"), CostInput("y"), CostInput("z"))) == 16 + 32 + 16
    assert donatable_bytes(program(CostInput("x"), CostInput("y", None, True), CostInput("z"))) == 0
    assert donatable_bytes(program(CostInput("x", 1), CostInput("y"), CostInput("z"))) == 0
    passed_on = CostProgram(
        (SMALL, LARGE), (CostBlock((0, 1), (), (0, 1)),), 0, (CostInput("x"), CostInput("y")), ("a", "b")
    )
    assert donatable_bytes(passed_on) == 0  # an argument that is returned needs no second place


def test_arguments_go_to_results_of_their_type() -> None:
    given = program(CostInput("x"), CostInput("y"), CostInput("z"))
    assert [entry.alias for entry in donated_inputs(given)] == [1, 0, 2]
    some = program(CostInput("x"), CostInput("y", None, True), CostInput("z"))
    assert donated_inputs(some) == some.inputs


def test_it_is_said_where_it_matters() -> None:
    large, small = CostTensor((1 << 20,), "f32", 4 << 20), CostTensor((4,), "f32", 16)

    def note(*tensors: CostTensor, arguments: int) -> str | None:
        block = CostBlock(tuple(range(arguments)), (), tuple(range(arguments, len(tensors))))
        inputs = tuple(CostInput(f"x{number}") for number in range(arguments))
        return donation_note(CostProgram(tensors, (block,), 0, inputs, ("a",)), 16 << 20, 3 << 20)

    said = note(large, large, arguments=1) or ""
    assert said.startswith("nothing is donated: results of 4.0 MiB per device have the types of arguments; ")
    assert said.endswith("which saves 3.0 MiB of 16.0 MiB")
    assert note(small, small, arguments=1) is None
    assert note(*[large] * 20, large, arguments=20) is None  # one of twenty
