"""Settings that every test needs before jax is imported: eight virtual CPU devices, fixed seeds.

Hypothesis draws the same examples on every run; `pytest --hypothesis-profile=thorough` draws new and many more ones.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = " ".join(
    [*os.environ.get("XLA_FLAGS", "").split(), "--xla_force_host_platform_device_count=8"]
)
sys.path.insert(0, str(Path(__file__).parent))
collect_ignore = ["filecheck"]  # lit's, which test_filecheck.py calls

_COMMON = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", _COMMON, derandomize=True)
settings.register_profile("thorough", _COMMON, max_examples=2000, print_blob=True)
settings.load_profile("fixed")
