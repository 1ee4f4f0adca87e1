"""Settings that every test needs before jax is imported: eight virtual CPU devices, fixed seeds.

Hypothesis draws the same examples on every run; `pytest --hypothesis-profile=thorough` draws new and many more ones,
and `--hypothesis-profile=fast` a few. `pytest -m "not slow"` leaves out what takes longer than five seconds.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = " ".join(
    [*os.environ.get("XLA_FLAGS", "").split(), "--xla_force_host_platform_device_count=8"]
)
os.environ.pop("COLUMNS", None)  # which pytest-xdist sets for its workers, and tables obey
TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "docs")]  # for `support`, and for the modules that make the pages
collect_ignore = ["filecheck"]  # lit's, which test_filecheck.py calls

_COMMON = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", _COMMON, derandomize=True)
settings.register_profile("thorough", _COMMON, max_examples=2000, print_blob=True)
settings.register_profile("fast", _COMMON, derandomize=True, max_examples=5)
settings.load_profile("fixed")

_SLOW = [
    "differential",
    "end_to_end",
    "packages",
    "page",
    "search",
    "test_benchmarks.py",
    "test_compiled.py",
    "test_docs.py",
    "test_filecheck.py::test_filecheck",
    "test_notebooks.py::test_a_notebook_shows_what_it_is_committed_with",
    "test_process_state.py::test_no_cache_keeps_a_module_alive",
    "unit/cli/test_isolate.py",
    "unit/cli/test_main.py",
    "unit/cli/test_refusals.py",
    "unit/cli/test_run_command.py",
    "unit/cli/test_streams.py",
    "unit/frontend/test_isolated.py",
    "unit/ir/test_dialects.py",
    "unit/ir/test_use_lists.py",
    "unit/reshard/test_moves.py::test_the_number_of_rounds_does_not_grow[4096]",
    "unit/runtime/test_execute.py",
    "unit/test_programs.py",
]
"""Folders, files and tests that take longer than five seconds each."""
_SAMPLES = (
    "differential/test_programs.py::test_program[mlp_training-sdy-propagation-pipeline]",
    "end_to_end/test_partition.py::test_a_program_computes_the_same_on_eight_devices[mlp_training]",
    "unit/cli/test_refusals.py::test_a_module_that_makes_no_sense_is_refused_with_one_message[text-show]",
)
"""Of these, what is run even so, that every room is covered."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow."""
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        is_slow = any(name == slow or name.startswith((f"{slow}/", f"{slow}::", f"{slow}[")) for slow in _SLOW)
        if is_slow and name not in _SAMPLES:
            item.add_marker(pytest.mark.slow)
