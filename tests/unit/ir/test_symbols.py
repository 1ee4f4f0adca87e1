from __future__ import annotations

import pytest

from pyshardy.ir import symbols
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import calls, functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.symbols import (
    ORIGINAL_NAME,
    SymbolTable,
    calls_in_post_order,
    clone_function,
    original_name,
    post_order,
    pre_order,
)
from pyshardy.passes.pipeline import run_pipeline

from .reading import find, function, names, read


def calling(**callees: str) -> str:
    """A module of functions; each calls those named."""
    parts = []
    for name, called in callees.items():
        body = "\n".join(f"  func.call @{callee}() : () -> ()" for callee in called.split())
        parts.append(f"func.func @{name}() {{\n{body}\n  return\n}}")
    return "\n".join(parts)


def mesh(name: str) -> Op:
    return Op("sdy.mesh", attrs={"sym_name": name})


def test_symbols_at_the_top() -> None:
    root = read('sdy.mesh @m = <["x"=2]> module @inner { func.func @no() { return } } func.func @f() { return }')
    table = SymbolTable(root)
    assert list(table.ops) == ["m", "inner", "f"]
    assert table["f"] is find(root, "func.func", 1)
    with pytest.raises(KeyError):
        table["no"]


def test_a_free_name_is_kept_and_the_op_appended() -> None:
    root = read("func.func @f() { return }")
    table = SymbolTable(root)
    new = mesh("m")
    assert table.insert(new) == "m"
    assert list(root.region.block)[-1] is new
    assert table["m"] is new


def test_taken_names_get_a_suffix_from_one_counter() -> None:
    table = SymbolTable(read("func.func @f() { return } func.func @f_1() { return } func.func @g() { return }"))
    assert [table.insert(mesh(name)) for name in ("f", "f", "g", "f", "h", "g")] == [
        "f_0",
        "f_2",
        "g_3",
        "f_4",
        "h",
        "g_5",
    ]
    assert table["g_3"].attrs["sym_name"] == "g_3"


def test_an_op_that_stands_somewhere_stays_there() -> None:
    root = read("func.func @f() { return }")
    new = mesh("m").insert_before(find(root, "func.func"))
    SymbolTable(root).insert(new)
    assert [op.name for op in root.region.block] == ["sdy.mesh", "func.func"]


def test_a_symbol_that_is_erased_frees_its_name() -> None:
    root = read("func.func @f() { return } func.func @g() { return }")
    table = SymbolTable(root)
    table.erase("f")
    assert names(list(functions(root))) == ["g"]
    assert table.insert(mesh("f")) == "f"


def test_the_callee_of_a_call() -> None:
    root = read(calling(main="f g", f="", g=""))
    table = SymbolTable(root)
    assert names([table.callee(call) for call in calls(root)]) == ["f", "g"]


def test_the_original_name() -> None:
    root = read(f'func.func @f() {{ return }} func.func @f_0() attributes {{{ORIGINAL_NAME} = "f"}} {{ return }}')
    assert [original_name(one) for one in functions(root)] == ["f", "f"]


@pytest.mark.parametrize(
    ("module", "order"),
    [
        ({"main": "a b", "a": "", "b": ""}, "a b main"),
        ({"main": "b a", "a": "", "b": ""}, "b a main"),
        ({"a": "", "main": "b a", "b": ""}, "a b main"),
        ({"main": "a b", "a": "b", "b": ""}, "b a main"),
        ({"main": "a b", "a": "c", "b": "c", "c": ""}, "c a b main"),
        ({"main": "a a a", "a": ""}, "a main"),
        ({"a": "", "b": "", "c": "a"}, "a b c"),
        ({"main": "f0", **{f"f{i}": f"f{i + 1}" for i in range(3)}, "f3": ""}, "f3 f2 f1 f0 main"),
    ],
)
def test_functions_come_after_what_they_call(module: dict[str, str], order: str) -> None:
    root = read(calling(**module))
    assert names(post_order(root)) == order.split()
    assert names(pre_order(root)) == order.split()[::-1]


def test_declarations_are_no_part_of_the_order() -> None:
    root = read("func.func private @d()\n" + calling(main="d f", f="d"))
    assert names(post_order(root)) == ["f", "main"]


def test_a_long_chain_of_calls() -> None:
    count = 3000
    chain = {f"f{number}": f"f{number + 1}" for number in range(count)}
    assert names(post_order(read(calling(**chain, **{f"f{count}": ""}))))[::count] == [f"f{count}", "f0"]


@pytest.mark.parametrize(
    ("module", "name", "cycle"),
    [
        ({"main": "main"}, "main", "@main -> @main"),
        ({"main": "a", "a": "b", "b": "a"}, "a", "@a -> @b -> @a"),
        ({"main": "c a", "a": "b", "b": "c a", "c": ""}, "a", "@a -> @b -> @a"),
    ],
)
def test_functions_that_call_themselves_are_refused(module: dict[str, str], name: str, cycle: str) -> None:
    root = read(calling(**module))
    for order in (post_order, pre_order, calls_in_post_order):
        with pytest.raises(PassError) as caught:
            order(root)
        assert caught.value.diagnostic.message == f"'func.func' op calls itself: {cycle}"
        assert caught.value.diagnostic.location == function(root, name).location


def test_calls_function_by_function() -> None:
    root = read(calling(main="a b", a="c d", b="d", c="", d=""))
    assert [call.attrs["callee"] for call in calls_in_post_order(root)] == ["c", "d", "d", "a", "b"]


def doubling(depth: int) -> str:
    """Functions that call each other twice."""
    return calling(
        main="f0", **{f"f{index}": f"f{index + 1} f{index + 1}" for index in range(depth)}, **{f"f{depth}": ""}
    )


def test_copies_for_every_call_are_counted_before_any_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    text = doubling(4)
    module = Module.parse(text)
    flat = run_pipeline(module, "sdy-flatten-call-graph")
    more = sum(len(ops_in(one)) for one in functions(flat.root)) - sum(
        len(ops_in(one)) for one in functions(module.root)
    )
    monkeypatch.setattr(symbols, "MOST_COPIED", more)
    assert len(calls_in_post_order(read(text))) == 9
    monkeypatch.setattr(symbols, "MOST_COPIED", more - 1)
    with pytest.raises(PassError, match=rf"one copy per call would add {more} ops; at most {more - 1} are copied"):
        calls_in_post_order(read(text))


@pytest.mark.parametrize(("depth", "count"), [(25, r"\d{9}"), (400, r"about 10\^121")])
@pytest.mark.parametrize("passes", ["sdy-flatten-call-graph", "sdy-import-func-calls"])
def test_functions_that_double_at_every_step_are_refused(depth: int, count: str, passes: str) -> None:
    message = f"call each other so often that one copy per call would add {count} ops; at most 1000000 are copied"
    with pytest.raises(PassError, match=message) as caught:
        run_pipeline(Module.parse(doubling(depth)), passes)
    assert caught.value.diagnostic.location is not None


def test_a_copy_of_a_function_has_copies_of_all_it_calls() -> None:
    root = read(calling(main="a", a="b b", b=""))
    table = SymbolTable(root)
    copy = clone_function(table["a"], table)
    assert names(list(functions(root))) == ["main", "a", "b", "b_0", "b_1", "a_2"]
    assert copy is table["a_2"]
    assert [call.attrs["callee"] for call in calls(copy)] == ["b_0", "b_1"]
    assert [call.attrs["callee"] for call in calls(table["a"])] == ["b", "b"]
    assert [original_name(one) for one in functions(root)] == ["main", "a", "b", "b", "b", "a"]


def test_a_copy_of_a_copy_remembers_the_first() -> None:
    root = read(calling(a=""))
    table = SymbolTable(root)
    again = clone_function(clone_function(table["a"], table), table)
    assert again.attrs["sym_name"] == "a_0_1"
    assert again.attrs[ORIGINAL_NAME] == "a"
    assert ORIGINAL_NAME not in table["a"].attrs


def test_calls_in_inner_modules_are_refused() -> None:
    module = Module.parse("module { func.func @g() { call @h() : () -> () return } func.func private @h() { return } }")
    outer = Module.parse(f"func.func @main() {{ return }}\n{module.text()}")
    with pytest.raises(PassError, match="calls @h, which is not at the top of the module"):
        run_pipeline(outer, "sdy-propagate-sharding-from-func-to-call")
