"""What the names in a file stand for: functions of JAX and flax under other names, and values that are written out."""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Literal = str | int | float | bool | None | tuple["Literal", ...]
"""A value that a source writes out."""

_FUNCTIONS = frozenset((
    "with_sharding_constraint", "with_logical_constraint", "logical_constraint", "with_partitioning",
    "with_logical_partitioning", "reshard", "PartitionSpec", "NamedSharding", "shard_map", "jit",
))  # fmt: skip
"""Functions that a variable may stand for, as `wsc = jax.lax.with_sharding_constraint`."""
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul
}  # fmt: skip
_STANDS_FOR, _LITERAL, _MODULE = "stands_for", "literal", "module"
"""The marks of nodes: the function or the value that a name stands for, or the module that it is."""


def name_of(node: ast.AST) -> str:
    """The last name of an expression such as `jax.jit`, where it was imported or assigned under another name, that one.

    Empty for another expression.
    """
    if isinstance(node, ast.Name):
        return str(vars(node).get(_STANDS_FOR, node.id))
    return node.attr if isinstance(node, ast.Attribute) else ""


def literal(node: ast.expr) -> Literal:
    """The value of an expression that is written out, also by variables.

    Raises:
        ValueError: It is not.

    >>> tree = mark(ast.parse("BATCH = 'data', 'fsdp'\\n[BATCH, (*BATCH, 'x'), None]"), {})
    >>> literal(tree.body[1].value)
    (('data', 'fsdp'), ('data', 'fsdp', 'x'), None)
    """
    match node:
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
        case ast.Name() | ast.Attribute() if _LITERAL in vars(node):
            known: Literal = vars(node)[_LITERAL]
            return known
        case ast.Tuple() | ast.List():
            return tuple(value for one in node.elts for value in _unpacked(one))
        case ast.BinOp():
            left, right = literal(node.left), literal(node.right)
            if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(node.op, ast.Add):
                return left + right
            if isinstance(left, int) and isinstance(right, int) and type(node.op) in _ARITHMETIC:
                return _ARITHMETIC[type(node.op)](left, right)
    raise ValueError(f"not written out: {ast.unparse(node)}")


def is_literal(node: ast.expr) -> bool:
    """Whether an expression is written out, also by variables."""
    try:
        literal(node)
    except ValueError:
        return False
    return True


def _unpacked(node: ast.expr) -> tuple[Literal, ...]:
    if not isinstance(node, ast.Starred):
        return (literal(node),)
    value = literal(node.value)
    if not isinstance(value, tuple):
        raise ValueError(f"not a tuple: {ast.unparse(node)}")
    return value


def mark(tree: ast.Module, imported: Mapping[str, Mapping[str, Literal]]) -> ast.Module:
    """Mark the names of a file that stand for something, for `name_of` and `literal`; in place.

    A variable counts if its file, class or function assigns it once, and nothing else gives it a value.

    Args:
        tree: The syntax of the file.
        imported: The variables of each of the user's modules that the file imports from, by the module as it writes it.
    """
    _mark(tree, {}, imported)
    return tree


def literals_in(tree: ast.Module) -> dict[str, Literal]:
    """The variables at the top of a file that are written out, and the fields of its classes, as ".axis".

    Args:
        tree: Its syntax, marked.
    """
    own = _own(tree)
    return {name: value[1] for name, value in [*_known(own), *_fields(own)] if value[0] == _LITERAL}


def _known(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, _Meaning]]:
    """The variables that are assigned once and stand for something."""
    for name, value in _assigned(nodes):
        if (meaning := _value_of(value)) is not None:
            yield name, meaning


def _fields(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, _Meaning]]:
    """The fields of classes with a default that is written out, such as the axes in a configuration.

    A default may be overridden where the class is called; whoever reads it has to compare it with what the program has.
    """
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    return ((f".{name}", meaning) for one in classes for name, meaning in _known(_own(one)))


_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_Meaning = tuple[str, Literal]
"""A mark with its value."""


def _mark(scope: _Scope, known: Mapping[str, _Meaning], imported: Mapping[str, Mapping[str, Literal]]) -> None:
    """Mark the names in a scope, where some names of those around it are known."""
    own = _own(scope)
    bound = _bound(own)
    here = {name: one for name, one in known.items() if name not in bound}
    here |= {name: one for name, one in _imports(own, imported) if bound[name] == 1}
    here |= _unambiguous([*_fields(own), *_imported_fields(imported)]) if isinstance(scope, ast.Module) else {}
    for name, value in _assigned(own):
        for node in ast.walk(value):  # what a variable is made of comes before it
            _mark_node(node, here, imported)
        if (meaning := _value_of(value)) is not None:
            here[name] = meaning
    for node in own:
        if isinstance(node, _Scope):
            _mark(node, known if isinstance(scope, ast.ClassDef) else here, imported)
        else:
            _mark_node(node, here, imported)


def _imported_fields(imported: Mapping[str, Mapping[str, Literal]]) -> Iterator[tuple[str, _Meaning]]:
    for values in imported.values():
        yield from ((name, (_LITERAL, value)) for name, value in values.items() if name.startswith("."))


def _unambiguous(pairs: Iterable[tuple[str, _Meaning]]) -> dict[str, _Meaning]:
    """What names stand for that have one meaning."""
    found: dict[str, set[_Meaning]] = {}
    for name, meaning in pairs:
        found.setdefault(name, set()).add(meaning)
    return {name: meaning for name, (meaning, *others) in found.items() if not others}


def _mark_node(node: ast.AST, here: Mapping[str, _Meaning], imported: Mapping[str, Mapping[str, Literal]]) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in here:
            vars(node).update([here[name]])
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in here and here[name][0] == _MODULE:
            values = imported.get(str(here[name][1]), {})
            vars(node).update([(_LITERAL, values[attr])] if attr in values else [])
        case ast.Attribute(attr=attr, ctx=ast.Load()) if f".{attr}" in here:
            vars(node).update([here[f".{attr}"]])


def _value_of(node: ast.expr) -> _Meaning | None:
    """What a variable stands for that is assigned this; None if that is not known."""
    if name_of(node) in _FUNCTIONS:
        return _STANDS_FOR, name_of(node)
    try:
        return _LITERAL, literal(node)
    except ValueError:
        return None


def _imports(nodes: Sequence[ast.AST], imported: Mapping[str, Mapping[str, Literal]]) -> Iterator[tuple[str, _Meaning]]:
    """The names that a scope imports, each with what it stands for."""
    for node in nodes:
        for alias in node.names if isinstance(node, ast.Import) else ():
            yield alias.asname or alias.name, (_MODULE, alias.name)
        if not isinstance(node, ast.ImportFrom):
            continue
        dots, module = "." * node.level, node.module or ""
        for alias in node.names:
            values, inner = imported.get(dots + module, {}), dots + f"{module}.{alias.name}".strip(".")
            if alias.name in values:
                yield alias.asname or alias.name, (_LITERAL, values[alias.name])
            elif inner in imported:
                yield alias.asname or alias.name, (_MODULE, inner)
            elif alias.asname is not None:
                yield alias.asname, (_STANDS_FOR, alias.name)


def _own(scope: _Scope) -> list[ast.AST]:
    """The parts of a scope in their order, with the scopes in it but not with the parts of these."""
    found: list[ast.AST] = []
    rest = [*ast.iter_child_nodes(scope)][::-1]
    while rest:
        node = rest.pop()
        found.append(node)
        if not isinstance(node, _Scope):
            rest += [*ast.iter_child_nodes(node)][::-1]
    return found


def names_bound(scope: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that a function gives a value, its arguments among them.

    Args:
        scope: The function.
    """
    return set(_bound(_own(scope)))


def _assigned(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """The variables that are given a value once, by an assignment, each with the value."""
    bound = _bound(nodes)
    for node in nodes:
        for target, value in assigned(node):
            if isinstance(target, ast.Name) and bound[target.id] == 1:
                yield target.id, value


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a statement assigns, each with its value; tuples part by part."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    for target in targets if value is not None else ():
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts)
        elif value is not None:
            yield target, value


def value_of(tree: ast.AST, name: str) -> ast.expr | None:
    """What a source assigns to a name; None if it does so never, or several times.

    Args:
        tree: The source.
        name: The name.
    """
    pairs = [pair for node in ast.walk(tree) if isinstance(node, ast.Assign) for pair in assigned(node)]
    found = [value for target, value in pairs if isinstance(target, ast.Name) and target.id == name]
    return found[0] if len(found) == 1 else None


def _bound(nodes: Sequence[ast.AST]) -> Counter[str]:
    """How often each name is given a value."""
    return Counter(name for node in nodes for name in _bound_by(node))


def _bound_by(node: ast.AST) -> Sequence[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return (name,)
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Import() | ast.ImportFrom():
            return [one.asname or one.name.split(".")[0] for one in node.names]
        case ast.Global() | ast.Nonlocal():
            return [*node.names, *node.names]  # another scope gives it a value, too
    return ()
