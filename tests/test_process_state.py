"""What the package keeps for a whole process: every cache is emptied by `clear_caches`, all else is on `docs/threads.md`."""

from __future__ import annotations

import ast
import gc
import importlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pyshardy

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pyshardy"
PAGE = (ROOT / "docs/threads.md").read_text()
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "examples"]
TEXTS = {path: path.read_text() for path in MODULES}


@cache
def tree_of(path: Path) -> ast.Module:
    """A file of the package; to read them all takes a second, which not every test needs."""
    return ast.parse(TEXTS[path])


CACHING = {"cache", "lru_cache"}
MUTATING = {
    "add",
    "append",
    "appendleft",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "remove",
    "setdefault",
    "update",
}


def module_of(path: Path) -> str:
    """The name by which a file of the package is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Caches


def is_caching(node: ast.expr) -> bool:
    """Whether an expression is `cache`, `lru_cache`, or a call of one, however it is imported."""
    while isinstance(node, ast.Call):
        node = node.func
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) in CACHING


def caches_in(tree: ast.Module) -> Iterator[str]:
    """The caches that a module has as long as the process lives: those of functions in functions go with these."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(map(is_caching, node.decorator_list)):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and any(map(is_caching, part.decorator_list)):
                    yield f"{node.name}.{part.name}"
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and is_caching(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


CACHES = [
    f"{module_of(path)}:{name}" for path, text in TEXTS.items() if "cache" in text for name in caches_in(tree_of(path))
]


def cache_of(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=3]>
func.func @main(%a: tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<6x6xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
  %1 = stablehlo.tanh %0 : tensor<6x6xf32>
  return %1 : tensor<6x6xf32>
}
"""


def use(cache: Any) -> None:
    """Leave a trace in a cache, which counts what it is asked for before it calls the function."""
    with suppress(Exception):
        cache(object())
    assert cache.cache_info().misses > 0


@pytest.mark.parametrize("name", CACHES)
def test_clear_caches_clears_it(name: str) -> None:
    cache = cache_of(name)
    use(cache)
    pyshardy.clear_caches()
    assert cache.cache_info().misses == cache.cache_info().currsize == 0, "register_cache(...cache_clear)"


def test_clear_caches_empties_what_a_program_fills() -> None:
    str(pyshardy.partition(pyshardy.load(PROGRAM)))
    sizes = [cache_of(name).cache_info().currsize for name in CACHES]
    assert sum(size > 0 for size in sizes) > 8
    pyshardy.clear_caches()
    assert {cache_of(name).cache_info().currsize for name in CACHES} == {0}


def test_no_cache_grows_without_end() -> None:
    """Only what is asked with names from the tables of the package has no bound."""
    unbounded = {name for name in CACHES if cache_of(name).cache_parameters()["maxsize"] is None}
    assert unbounded == {
        "pyshardy.ir.context:_mend_casts",
        "pyshardy.transforms.local.table:local_handler_of",
        "pyshardy.passes.partitioning.pad_for_divisibility:pad_handler_of",
        "pyshardy.passes.table:pass_class",
        "pyshardy.rules.traits:function_of_trait",
    }


def live_contexts() -> int:
    from jaxlib.mlir import ir

    gc.collect()
    count: int = ir.Context._get_live_count()
    return count


@pytest.mark.slow
def test_no_cache_keeps_a_module_alive() -> None:
    pyshardy.clear_caches()
    before = live_contexts()
    partition = pyshardy.partition(pyshardy.load(PROGRAM))
    assert "all_gather" in str(partition)
    assert live_contexts() > before
    del partition
    assert live_contexts() == before


def test_a_cache_is_found_however_it_is_written() -> None:
    source = """
import functools
from functools import cache, lru_cache
@functools.lru_cache(maxsize=3)
def a(): ...
@cache
def b():
    @cache
    def local(): ...
c = lru_cache(maxsize=2)(abs)
class D:
    @cache
    def e(self): ...
def f(): ...
"""
    assert list(caches_in(ast.parse(source))) == ["a", "b", "c", "D.e"]


def test_a_cache_that_is_not_cleared_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyshardy.core.intern._cache_clearers", [])
    with pytest.raises(AssertionError):
        test_clear_caches_clears_it("pyshardy.rules.table:_cached_rule")
    monkeypatch.undo()
    pyshardy.clear_caches()


# Everything else that changes


def names_changed_in(tree: ast.Module) -> set[str]:
    """The names of a module that its functions change, or bind anew."""
    names = {
        target.id
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    found = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        local = {
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        local |= {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
        for node in ast.walk(function):
            if isinstance(node, ast.Global):
                found |= set(node.names)
                continue
            changed: ast.expr | None = None
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                changed = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATING:
                changed = node.func.value
            if isinstance(changed, ast.Name) and changed.id in names - local:
                found.add(changed.id)
    return found


@pytest.mark.slow
def test_what_changes_is_on_the_page() -> None:
    changing = {(str(path.relative_to(PACKAGE)), name) for path in TEXTS for name in names_changed_in(tree_of(path))}
    assert ("rules/user_rules.py", "USER_RULES") in changing
    for path, name in sorted(changing):
        assert f"`{path}`" in PAGE and f"`{name}`" in PAGE, f"docs/threads.md does not mention {name} in {path}"


SETS_IN_OTHERS = re.compile(
    r"gc\.(freeze|disable)|register_type_caster\(|register_lowering\(|os\.environ(\[|\.setdefault)|sys\.modules\[.*\] ="
    r"|sys\.std(out|err) =|distributed\.initialize\(|\.globals\.|jax\.config\.update|os\.dup2|signal\.signal"
)
"""How code of the package changes what is not its own."""


def test_what_is_set_in_others_is_on_the_page() -> None:
    setting = {str(path.relative_to(PACKAGE)) for path, text in TEXTS.items() if SETS_IN_OTHERS.search(text)}
    assert {"ir/context.py", "ir/pause_gc.py"} <= setting
    assert {path for path in setting if f"`{path}`" not in PAGE} == set()


def test_a_change_is_found_however_it_is_written() -> None:
    source = """
A, B, C, D, E, F = {}, [], set(), 0, {}, {}
a = {}
b = []
c = 0
d = {}
e = {}
def f(x, d):
    global c
    a[x] = 1
    b.append(x)
    d[x] = 1
    e = {}
    e[x] = 2
"""
    assert names_changed_in(ast.parse(source)) == {"a", "b", "c"}


# Threads


def in_threads(work: Callable[[int], object], count: int = 4) -> list[object]:
    """What `work` gives in threads that run at once; raises what one of them raised."""
    found: list[object] = [None] * count
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            found[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found


@pytest.mark.slow
def test_threads_share_a_module(eager_threads: None) -> None:
    alone = pyshardy.partition(pyshardy.load(PROGRAM)).module.text()
    shared = pyshardy.load(PROGRAM)

    def work(number: int) -> set[str]:
        found = set()
        for _ in range(5):
            if number == 0:
                pyshardy.clear_caches()
            found.add(pyshardy.partition(pyshardy.propagate(shared)).module.text())
            found.add(pyshardy.partition(pyshardy.load(PROGRAM)).module.text())
        return found

    assert in_threads(work) == [{alone}] * 4


def test_an_error_in_a_thread_is_noticed() -> None:
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda number: 1 // number)
