from __future__ import annotations

import pytest

from pyshardy.ir.callers import Callers
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import functions
from pyshardy.ir.op_lists import ops_named

from .reading import function, names, read

CALL = "func.call @g() {{place = {} : i32}} : () -> ()\n"


def places(text: str, name: str = "g") -> list[int]:
    root = read(text)
    found = [call.attrs["place"].value for call in Callers(root).of(function(root, name))]
    known = Callers(root, ops_named(root, ("func.call",)))
    assert [call.attrs["place"].value for call in known.of(function(root, name))] == found
    return found


def test_calls_of_one_block_come_in_order() -> None:
    text = f"func.func private @g()\nfunc.func @f() {{ {CALL.format(1)}{CALL.format(2)} return }}"
    assert places(text) == [1, 2]


def test_calls_of_functions_come_in_order() -> None:
    text = "func.func private @g()\n" + "".join(f"func.func @f{n}() {{ {CALL.format(n)} return }}\n" for n in range(3))
    assert places(text) == [0, 1, 2]


def test_calls_in_regions_come_after_those_around_them_and_the_last_region_first() -> None:
    case = """%n{0} = "stablehlo.case"(%c) ({{
      {1} stablehlo.return %c : tensor<i32>
    }}, {{
      {2} stablehlo.return %c : tensor<i32>
    }}) : (tensor<i32>) -> tensor<i32>
"""
    inner = case.format(3, CALL.format(31), CALL.format(32))
    body = (
        case.format(1, CALL.format(11), CALL.format(12))
        + CALL.format(0)
        + case.format(2, CALL.format(21), inner + CALL.format(22))
    )
    text = f"func.func private @g()\nfunc.func @f(%c: tensor<i32>) {{ {body} return }}"
    assert places(text) == [0, 22, 32, 31, 21, 12, 11]


def test_functions_that_nothing_calls() -> None:
    assert places("func.func @g() { return }") == []


def test_calls_before_the_function_they_call() -> None:
    assert places(f"func.func @f() {{ {CALL.format(1)} return }}\nfunc.func private @g()") == [1]


def test_callees() -> None:
    root = read(
        "func.func private @g()\nfunc.func private @h()\nfunc.func @f() { call @h() : () -> () call @g() : () -> () return }"
    )
    callers = Callers(root)
    found = [callers.callee(call) for one in functions(root) for call in callers.of(one)]
    assert names(found) == ["g", "h"]


def test_a_call_of_an_unknown_function_has_no_callee() -> None:
    root = read("func.func private @g()\nfunc.func @f() { call @g() : () -> () return }")
    callers = Callers(root)
    (call,) = callers.of(function(root, "g"))
    call.set_attr("callee", "nothing")
    with pytest.raises(PassError, match="calls @nothing, which is not at the top of the module"):
        callers.callee(call)
