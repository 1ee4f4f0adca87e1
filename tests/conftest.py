"""Settings that every test needs before jax is imported: eight virtual CPU devices, fixed seeds.

Hypothesis draws the same examples on every run; `pytest --hypothesis-profile=thorough` draws new and many more ones,
and `--hypothesis-profile=fast` a few. `pytest -m "not slow"` leaves out what is marked as slow. Tests that are marked as
sampled run on some of their cases.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.environment import kept_environment
from tests.support.marks import ALL_TESTS, has_no_fast_test, is_slow, left_out, unknown_cases

if TYPE_CHECKING:
    from tests.differential.reference_process import ReferenceProcess

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["PYSHARDY_CACHE_DIR"] = ""  # what a compiler answers is not kept from one run to the next
os.environ["XLA_FLAGS"] = " ".join(
    [  # LLVM compiles in a third less time without optimizations, which change no collective and no buffer
        *os.environ.get("XLA_FLAGS", "").split(),
        "--xla_force_host_platform_device_count=8",
        "--xla_backend_optimization_level=0",
    ]
)
os.environ.pop("COLUMNS", None)  # which pytest-xdist sets for its workers, and tables obey
TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "docs")]  # for `support`, and for the modules that make the pages
collect_ignore = ["filecheck", "packages/watched"]  # lit's, which test_filecheck.py calls; scripts for other packages

_COMMON = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", _COMMON, derandomize=True)
settings.register_profile("thorough", _COMMON, max_examples=2000, print_blob=True)
settings.register_profile("fast", _COMMON, derandomize=True, max_examples=5)
settings.load_profile("fixed")


def pytest_configure() -> None:
    """Let the collector look at old objects rarely: JAX's caches hold many of them.

    A few are frozen, so that `pause_gc` leaves the generations alone; few, as it has to count them.
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 100)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import files without a fast test if only those run."""
    is_left_out = config.option.markexpr == "not slow" and has_no_fast_test(collection_path, TESTS)
    return True if is_left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases of which a sample is enough, and mark what is slow."""
    names = {item.nodeid.removeprefix("tests/"): item for item in items}
    are_all = not any("::" in argument for argument in config.args)
    unknown = list(unknown_cases({name: list(item.iter_markers()) for name, item in names.items()})) if are_all else []
    if unknown:
        raise pytest.UsageError(f"marks name cases that do not exist: {', '.join(unknown)}")
    for name, item in names.items():
        if is_slow(name, list(item.iter_markers())):
            item.add_marker(pytest.mark.slow)
    if ALL_TESTS not in os.environ and are_all:
        sampled = {name: item.get_closest_marker("sampled") for name, item in names.items()}
        counts = {name.partition("[")[0]: mark.args[0] for name, mark in sampled.items() if mark is not None}
        samples = [name for name, item in names.items() if item.get_closest_marker("slow_but_for") is not None]
        kept = {name for name in samples if names[name].get_closest_marker("slow") is None}
        omitted = set(left_out(counts, names, kept))
        config.hook.pytest_deselected(items=[names[name] for name in omitted])
        items[:] = [item for item in items if item.nodeid.removeprefix("tests/") not in omitted]


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceProcess]:
    """The reference in a process of its own, which ends with the tests of a file."""
    from tests.differential.reference_process import ReferenceProcess

    with ReferenceProcess() as process:
        yield process


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads that take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """No test may leave an environment variable behind."""
    with kept_environment():
        yield


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After each file, forget the programs that JAX has compiled: they would fill gigabytes."""
    if (nextitem is None or nextitem.path != item.path) and "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
