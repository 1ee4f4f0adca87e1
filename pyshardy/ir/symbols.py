"""Symbols and the call graph of a module.

Source: docs/semantics/import.md#symbols-and-calls
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log10

from pyshardy.core.text import format_symbol
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import calls, functions, is_declaration
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in

ORIGINAL_NAME = "sdy.original_func_name"
MOST_COPIED = 1_000_000
"""The most ops that all copies of functions may have together."""
_WRITTEN_OUT = 10**15


class SymbolTable:
    """The symbols at the top level of a module; gives new symbols free names.

    A taken name gets a suffix from one counter that all names share.

    Args:
        root: The module.
        besides: An op at the top level that does not have its name yet.
    """

    def __init__(self, root: Op, besides: Op | None = None) -> None:
        self.block = root.region.block
        self.ops: dict[str, Op] = {
            op.attrs["sym_name"]: op for op in self.block if "sym_name" in op.attrs and op is not besides
        }
        self._counter = 0

    def __getitem__(self, name: str) -> Op:
        return self.ops[name]

    def insert(self, op: Op) -> str:
        """Give a symbol op a free name, and append it to the module unless it is there already."""
        base: str = op.attrs["sym_name"]
        name = base
        while name in self.ops:
            name = f"{base}_{self._counter}"
            self._counter += 1
        op.set_attr("sym_name", name)
        self.ops[name] = op
        if op.block is None:
            self.block.append(op)
        return name

    def erase(self, name: str) -> None:
        """Remove a symbol op from the module; its name is free again."""
        self.ops.pop(name).erase()

    def callee(self, call: Op) -> Op:
        """The function that a call refers to."""
        return callee_in(self.ops, call)


def callee_in(functions: Mapping[str, Op], call: Op) -> Op:
    """The function that a call refers to, from the functions of the module by name.

    Raises:
        PassError: There is none. A call in a module inside the module refers to a function of that one.
    """
    name: str = call.attrs["callee"]
    if name not in functions:
        raise PassError(call, f"calls {format_symbol(name)}, which is not at the top of the module")
    return functions[name]


def original_name(function: Op) -> str:
    """The name of the function that this one was copied from, or its own."""
    found: str = function.attrs.get(ORIGINAL_NAME, function.attrs["sym_name"])
    return found


def post_order(root: Op) -> list[Op]:
    """The functions with a body, each after all that it calls; otherwise in the order of the module and of the calls.

    Raises:
        PassError: A function calls itself, directly or through others.
    """
    return list(_calls_by_function(root))


def _calls_by_function(root: Op) -> dict[Op, list[Op]]:
    """The calls of every function with a body, callees first."""
    found: dict[str, Op] = {op.attrs["sym_name"]: op for op in functions(root) if not is_declaration(op)}
    inside = {name: calls(function) for name, function in found.items()}
    callees = {
        name: list(dict.fromkeys(call.attrs["callee"] for call in made if call.attrs["callee"] in found))
        for name, made in inside.items()
    }
    done: dict[str, Op] = {}
    for name in found:
        _visit(name, found, callees, done)
    return {function: inside[name] for name, function in done.items()}


def _visit(start: str, found: dict[str, Op], callees: dict[str, list[str]], done: dict[str, Op]) -> None:
    path = {start: iter(callees[start])} if start not in done else {}
    while path:
        name = next(reversed(path))
        callee = next((callee for callee in path[name] if callee not in done), None)
        if callee is None:
            done[name] = found[name]
            del path[name]
        elif callee in path:
            steps = list(path)
            cycle = (*steps[steps.index(callee) :], callee)
            raise PassError(found[callee], f"calls itself: {' -> '.join(format_symbol(step) for step in cycle)}")
        else:
            path[callee] = iter(callees[callee])


def pre_order(root: Op) -> list[Op]:
    """The reverse of `post_order`: callers first, and among siblings the one called last."""
    return post_order(root)[::-1]


def calls_in_post_order(root: Op) -> list[Op]:
    """All calls: function by function in post-order, in program order inside each.

    Raises:
        PassError: A function calls itself; or the copies for all calls take too many ops. If functions call others
            twice, which call others twice again, the number doubles at every step.
    """
    found = _calls_by_function(root)
    every = [call for made in found.values() for call in made]
    if len({call.attrs["callee"] for call in every}) < len(every):
        _check_copies(found)
    return every


def _check_copies(calls_by_function: dict[Op, list[Op]]) -> None:
    sizes: dict[str, int] = {}
    called: set[str] = set()
    copied, place = 0, None
    for function, made in calls_by_function.items():
        callees = [call.attrs["callee"] for call in made]
        for callee in callees:
            copied += sizes.get(callee, 1) if callee in called else 0
            called.add(callee)
        sizes[function.attrs["sym_name"]] = len(ops_in(function)) + sum(sizes.get(name, 1) for name in callees)
        if place is None and copied > MOST_COPIED:
            place = function
    if place is not None:
        raise PassError(
            place,
            "is one of the functions that call each other so often that one copy per call would add "
            f"{_rounded(copied)} ops; at most {MOST_COPIED} are copied; let a loop repeat the calls, or call the "
            "functions less often",
        )


def _rounded(number: int) -> str:
    """A number, or its count of digits if it is long.

    >>> _rounded(33554432), _rounded(2**200)
    ('33554432', 'about 10^60')
    """
    return str(number) if number < _WRITTEN_OUT else f"about 10^{int((number.bit_length() - 1) * log10(2))}"


def clone_function(function: Op, table: SymbolTable) -> Op:
    """Copy a function and, recursively, everything it calls; every call in a copy gets its own copy.

    Copies record the name of their original and are appended to the module, inner ones first.
    """
    copy = function.clone()
    copy.set_attr(ORIGINAL_NAME, original_name(function))
    for call in calls(copy):
        call.set_attr("callee", clone_function(table.callee(call), table).attrs["sym_name"])
    table.insert(copy)
    return copy
