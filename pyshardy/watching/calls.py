"""Runs inside a watched script: the names of arrays that a framework hands to JAX by number.

When JAX compiles a program, the calls that led there are still running, and a framework's own call holds the model. Its
public functions say in which order the arrays of a model come. What a framework holds otherwise in another version is
not found, and the numbers stay.

Like `inside.py`, this file is copied to the script, whose Python need not have pyshardy: it imports nothing but the
standard library.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

ModelNames = dict[str, tuple[str, list[int]]]
"""For the name that JAX was given: the name in the model, and the first sizes of the array.

For arguments without a name, "%3" is the argument at position 3. "result[1]*" stands for all names that begin with
"result[1]"; the rest of each name is kept.
"""

NUMBERED = re.compile(r"\"(?:[^\"]*\.states\[0\]\[\d|dynamic_\w+\[|state\[\d\]\[\d|args\[\d)|@main\(.*loc\(unknown\)")
"""How a program looks in which names are numbers, or arguments have none."""
_UNKNOWN = re.compile(r"@main\(.*loc\(unknown\)")
_FLAT = re.compile(r"\[<flat index (\d+)>\]")
"""How JAX writes a child without a key, which it names `[0]` in programs."""
_DEPTH = 400
"""The number of calls to look through."""
_MODULE = re.compile(r"^module @([\w.$-]+)", re.MULTILINE)
_LOWERED_NOW = "/jax/core/compile/jaxpr_to_mlir_module_duration"
_lowered: dict[str, ModelNames] = {}
"""The names of arrays of programs that were lowered, by the letters of the program's name."""


def names_of_calls(text: str) -> ModelNames:
    """The names of arrays of the program that is being compiled.

    Args:
        text: Its text; without numbers in the place of names, no call is looked at.
    """
    if NUMBERED.search(text) is None:
        return {}
    for found in _found(_FINDERS):
        if (_UNKNOWN.search(text) is not None) == ("%0" in found):
            return found
    name = _MODULE.search(text)
    return _lowered.get(_letters(name[1]), {}) if name is not None else {}


def note_lowering(event: str, name: str) -> None:
    """Keep the names of a program that is lowered now, but compiled when the call that holds them has ended.

    If two functions of one name are lowered, it is not known which program has which names. Then the numbers stay.

    Args:
        event: What JAX reports.
        name: The name of the program, of which it reports that.
    """
    if event == _LOWERED_NOW:
        for found in _found(_LOWERING):
            key = _letters(name)
            _lowered[key] = found if _lowered.get(key, found) == found else {}
            return


def _letters(name: str) -> str:
    """What is the same in `jit(step)` and `jit_step`."""
    return re.sub(r"[\W_]", "", name)


def _found(finders: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], ModelNames]]) -> Iterator[ModelNames]:
    """The names that running calls hold, the innermost first."""
    for frame in _frames():
        find = finders.get(_place(frame))
        if find is not None:
            with suppress(Exception):  # another version of the framework
                found = find(frame.f_locals)
                if found:
                    yield found


def function_of_calls(name: str) -> str:
    """The name of the program that is being compiled, by the user's function, where a framework hides that.

    Args:
        name: The name that JAX was given.
    """
    if name != "jit_call_torch":
        return name
    for frame in _frames():
        if _place(frame) == _TORCHAX:
            with suppress(Exception):
                return f"jit_{_torch_function(frame.f_locals).__name__}"
    return name


def _place(frame: Any) -> tuple[str, str]:
    """The module and the name of a running function."""
    return str(frame.f_globals.get("__name__")), frame.f_code.co_name


def _frames() -> Iterator[Any]:
    """The running calls, the innermost first."""
    frame = sys._getframe(1)
    for _ in range(_DEPTH):
        if frame is None:
            return
        yield frame
        frame = frame.f_back  # type: ignore[assignment]


def _shape(value: Any) -> list[int]:
    return [int(size) for size in getattr(value, "shape", ())]


def _bound(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[tuple[str, Any]], int]:
    """The arguments by their names, positional ones first, and the number of these."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    named: list[tuple[str, Any]] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = bound.arguments.get(parameter.name, ())
            named += [(f"{parameter.name}[{number}]", value) for number, value in enumerate(rest)]
        elif len(named) < len(bound.args) and parameter.name in bound.arguments:
            named.append((parameter.name, bound.arguments[parameter.name]))
    return named + list(bound.kwargs.items()), len(bound.args)


def _leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[str, Any]]:
    """The path and the value of every leaf, in the order of JAX."""
    tree_util = sys.modules["jax"].tree_util
    found = tree_util.tree_flatten_with_path(tree, is_leaf=is_leaf)[0]
    return [(_FLAT.sub(r"[\1]", tree_util.keystr(path)), leaf) for path, leaf in found]


def _equinox(names: Mapping[str, Any]) -> ModelNames:
    """Names under `eqx.filter_jit`: the leaves of the first argument, and those of the others, are numbered."""
    arguments, _ = _bound(names["jit_wrapper"], names["args"], names["kwargs"])
    found: ModelNames = {"result[0]": ("result.equinox_marker", []), "result[1]*": ("result", [])}
    for part, given in (("first", arguments[:1]), ("rest", arguments[1:])):
        leaves = [(name + path, leaf) for name, value in given for path, leaf in _leaves(value)]
        for number, (name, leaf) in enumerate(leaves):
            for kind in ("donate", "nodonate"):
                found[f"dynamic_{kind}['{part}'][{number}]"] = (name, _shape(leaf))
    return found


def _references(names: Mapping[str, Any]) -> ModelNames:
    """Names of the arguments of a function that takes mutable arrays, for which JAX writes none; by their positions."""
    arguments, _ = _bound(names["fun"], names["args"], names["kwargs"])
    leaves = [(name + path, leaf) for name, value in arguments for path, leaf in _leaves(value)]
    return {f"%{number}": (name, _shape(leaf)) for number, (name, leaf) in enumerate(leaves)}


def _haliax(names: Mapping[str, Any]) -> ModelNames:
    """Names under `hax.named_jit`: paths are kept behind the numbers of arguments."""
    arguments, count = _bound(names["self"], names["args"], names["kwargs"])
    found: ModelNames = {"result[0]*": ("result", [])}
    for number, (name, value) in enumerate(arguments):
        place = f"[0][{number}]" if number < count else f"[1]['{name}']"
        for path, leaf in _leaves(value):
            for kind in ("donated", "reserved"):
                found[f"dynamic_{kind}[1]{place}{path}"] = (name + path, _shape(leaf))
    return found


def _torchax(names: Mapping[str, Any]) -> ModelNames:
    """Names under `torchax.interop.jax_jit`, which calls a function of `*args` and `**kwargs`."""
    arguments, count = _bound(_torch_function(names), names["args"], names["kwargs"])
    found: ModelNames = {}
    for number, (name, value) in enumerate(arguments):
        place = f"args[{number}]" if number < count else f"kwargs['{name}']"
        found |= {place + path: (name + path, _shape(leaf)) for path, leaf in _leaves(value)}
    return found


def _torch_function(names: Mapping[str, Any]) -> Any:
    """The user's function in a call of what `torchax.interop.jax_jit` made of it."""
    function = inspect.unwrap(names["jax_func"]).args[0]
    while hasattr(function, "func") and not hasattr(function, "__name__"):
        function = function.func  # the method of a compiled module
    return function


def _nnx(names: Mapping[str, Any]) -> ModelNames:
    """Names under `nnx.jit`: the arrays of every model are numbered."""
    nnx = sys.modules["flax.nnx"]
    model = getattr(nnx, "Pytree", None) or nnx.Object
    args, kwargs = list(names.get("args", ())), names.get("kwargs", {})
    function = names.get("self")
    if args and type(args[0]).__module__.startswith("flax.nnx.transforms"):
        function = args.pop(0)
    if function is None or not any(isinstance(leaf, model) for leaf in _models((args, kwargs), model)):
        return {}
    arguments, count = _bound(function, args, kwargs)
    found: ModelNames = {}
    for position, (name, value) in enumerate(arguments):
        for path, leaf in _leaves(value, lambda node: isinstance(node, model)):
            if not isinstance(leaf, model):
                continue
            for number, (inner, variable) in enumerate(nnx.to_flat_state(nnx.state(leaf))):
                told = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in inner) + ".value"
                shape = _shape(variable.get_value() if hasattr(variable, "get_value") else variable.value)
                found[f"{name}{path}.states[0][{number}]"] = (f"{name}{path}{told}", shape)
                if position < count:
                    place = f"result[0][{position}]{path}"
                    found[f"{place}.states[0][{number}]"] = (f"{place}{told}", shape)
    return found


def _models(tree: Any, model: Any) -> list[Any]:
    return [leaf for _, leaf in _leaves(tree, lambda node: isinstance(node, model))]


def _keras(parts: Sequence[tuple[str, str]]) -> Callable[[Mapping[str, Any]], ModelNames]:
    """Names in the steps of keras, whose state is a list for each of some parts.

    Args:
        parts: The name that each part gets, and what holds its variables.
    """

    def names_of(names: Mapping[str, Any]) -> ModelNames:
        owner = names["self"]
        found: ModelNames = {}
        for part, (name, attribute) in enumerate(parts):
            for number, variable in enumerate(_followed(owner, attribute)):
                told = (f"{name}['{variable.path}']", _shape(variable))
                found[f"state[{part}][{number}]"] = told
                found[f"result[1][{part}][{number}]"] = (f"result[1].{told[0]}", told[1])
        return found

    return names_of


def _followed(owner: Any, path: str) -> Any:
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner


_TORCHAX = ("torchax.interop", "call_jax")
_MODEL = (("model", "trainable_variables"), ("model", "non_trainable_variables"))
_METRICS = ("metrics", "metrics_variables")
_KERAS = "keras.src.backend.jax.trainer"
_TRAINING = _keras((*_MODEL, ("optimizer", "optimizer.variables"), _METRICS))
_FINDERS: dict[tuple[str, str], Callable[[Mapping[str, Any]], ModelNames]] = {
    ("equinox._jit", "_call"): _equinox,
    ("haliax.partitioning", "_call"): _haliax,
    _TORCHAX: _torchax,
    ("jax._src.pjit", "cache_miss"): _references,
    ("flax.nnx.graphlib", "update_context_manager_wrapper"): _nnx,
    ("flax.nnx.graph", "update_context_manager_wrapper"): _nnx,
    ("flax.nnx.transforms.compilation", "__call__"): _nnx,
    (_KERAS, "fit"): _TRAINING,
    (_KERAS, "train_on_batch"): _TRAINING,
    (_KERAS, "evaluate"): _keras((*_MODEL, _METRICS)),
    (_KERAS, "test_on_batch"): _keras((*_MODEL, _METRICS)),
    (_KERAS, "predict"): _keras(_MODEL),
    (_KERAS, "predict_on_batch"): _keras(_MODEL),
}
"""What knows the names, by the module and the name of a framework's call that holds the model."""
_LOWERING = {place: _FINDERS[place] for place in (("equinox._jit", "_call"), ("haliax.partitioning", "_call"))}
"""Of these, the calls that may lower a program without compiling it."""
