"""Frozen copies of weights, as of a reference model, that are annotated otherwise than those of the same names."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.ports import annotation_patch
from pyshardy.checkup.patching.source import replaced, user_files
from pyshardy.checkup.patching.written_specs import stated_in
from pyshardy.checkup.program.annotating import OtherInputs
from pyshardy.checkup.program.families import LEAST_LEAVES, axes_of
from pyshardy.checkup.program.ties import unreturned
from pyshardy.core.alike import general
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import counted
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.module import Module
from pyshardy.report.diagnosis import FindingKind
from pyshardy.results.hints.edits import spec_text
from pyshardy.source.meanings import name_of
from pyshardy.source.syntax import syntax_tree

_KEY = re.compile(r"\[[^\]]*\]|\.\w+")
_MOST_KEYS = 2
"""The keys that a tree may be under in its argument, as in `state.model['params']`."""
_Tree = dict[str, InterfaceTensor]
"""Weights by what follows the name of their tree in their names."""
_WHY = "they are the same weights twice, and a device holds more of these than of those"


class Twin(NamedTuple):
    """A tree of weights that a step does not change, and one of the same names and shapes that is split further.

    Attributes:
        name: The tree.
        other: The other tree.
        pairs: Its weights that are split less, with the shardings of the other ones.
    """

    name: str
    other: str
    pairs: Sequence[tuple[InterfaceTensor, TensorSharding]]


def twin_cures(module: Module) -> Iterator[Cure]:
    """Weights that a step does not change, annotated as those of another tree that has their names and shapes.

    Args:
        module: The program.
    """
    for twin in twins(module):
        first = twin.pairs[0][0]
        yield Cure(
            FindingKind.STATE,
            f"{counted(len(twin.pairs), 'weight')} of `{twin.name}`, such as `{first.name}` with {spec_text(first)}, "
            f"are split less than those of `{twin.other}`",
            _WHY,
            None,
            f"annotate the weights of `{twin.name}` as those of `{twin.other}`",
            OtherInputs(twin.pairs),
            partial(_patch, module, twin),
            inputs=frozenset(one.index for one, _ in twin.pairs),
        )


def twins(module: Module) -> Iterator[Twin]:
    """The trees of weights that have such another one.

    Args:
        module: The program.
    """
    frozen = {one.index for one in unreturned(module)}
    alike: dict[frozenset[tuple[str, tuple[int, ...]]], list[tuple[str, _Tree]]] = {}
    for name, leaves in _trees(input_tensors(module.root)).items():
        alike.setdefault(frozenset((tail, one.shape) for tail, one in leaves.items()), []).append((name, leaves))
    for name, own, other, usual in (pair for group in alike.values() for pair in _pairs(group, frozen)):
        if frozen.isdisjoint(one.index for one in own.values()):
            continue
        pairs = [(own[tail], usual[tail]) for tail in own if axes_of(own[tail]) != axes_of(usual[tail])]
        if pairs and all(set(axes_of(one)) < set(axes_of(better)) for one, better in pairs):
            frozen -= {one.index for one in own.values()}
            yield Twin(name, other, [(one, better.sharding) for one, better in pairs if better.sharding])


def _pairs(trees: Sequence[tuple[str, _Tree]], frozen: Collection[int]) -> Iterator[tuple[str, _Tree, str, _Tree]]:
    """Trees that a step does not change, each with the others of its names that are not of another layer."""
    kept = [(name, own) for name, own in trees if all(one.index in frozen for one in own.values())]
    for name, own in kept:
        for other, usual in trees:
            if general(name) != general(other):
                yield name, own, other, usual


def _trees(inputs: Sequence[InterfaceTensor]) -> dict[str, _Tree]:
    """The weights of each argument, and under each of its first keys, by what follows in their names."""
    found: dict[str, _Tree] = {}
    for one in inputs:
        starts = [match.start() for match in _KEY.finditer(one.name)][: _MOST_KEYS + 1]
        for at in starts:
            found.setdefault(one.name[:at], {})[one.name[at:]] = one
    return {name: leaves for name, leaves in found.items() if len(leaves) >= LEAST_LEAVES}


def _patch(module: Module, twin: Twin) -> str:
    """A diff that hands the specs of the other tree to the call that makes the tree; else one of each spec."""
    for file in user_files(module.root):
        tree = syntax_tree(file)
        if tree is None:
            continue
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
            made = dict(_made(function))
            own, other = made.get(_last(twin.name)), made.get(_last(twin.other))
            if own is None or other is None or ast.unparse(own.func) != ast.unparse(other.func):
                continue
            differing = [pair for pair in _arguments(own, other) if len({ast.unparse(node) for node in pair}) > 1]
            one, better = differing[0] if len(differing) == 1 else (None, None)
            if one is not None and better is not None and one.lineno == one.end_lineno and stated_in(one, tree):
                return replaced(file, one.lineno, one.col_offset, one.end_col_offset or 0, ast.unparse(better))
    return annotation_patch(module, twin.pairs)


def _arguments(one: ast.Call, other: ast.Call) -> list[tuple[ast.expr, ast.expr]]:
    """What two calls give to the same arguments."""
    named = {word.arg: word.value for word in other.keywords}
    return [*zip(one.args, other.args), *((word.value, named[word.arg]) for word in one.keywords if word.arg in named)]


def _last(name: str) -> str:
    """The last key of a tree, or the argument that it is.

    >>> _last("state['params']"), _last("state.model"), _last("reference")
    ('params', 'model', 'reference')
    """
    return str(re.findall(r"\w+", name)[-1])


def _made(function: ast.FunctionDef) -> Iterator[tuple[str, ast.Call]]:
    """The calls that make what a function assigns to a name, or stores or hands on under a key."""
    for node in ast.walk(function):
        pairs: list[tuple[str, ast.expr]] = []
        match node:
            case ast.Assign(targets=[target], value=value):
                pairs = [(name_of(target), value)]
            case ast.keyword(arg=str(key), value=value):
                pairs = [(key, value)]
            case ast.Dict(keys=keys, values=values):
                pairs = [(str(key.value), one) for key, one in zip(keys, values) if isinstance(key, ast.Constant)]
        yield from ((name, value) for name, value in pairs if isinstance(value, ast.Call))
