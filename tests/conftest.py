"""Settings that every test needs before jax is imported: eight virtual CPU devices, fixed seeds."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = " ".join(
    [*os.environ.get("XLA_FLAGS", "").split(), "--xla_force_host_platform_device_count=8"]
)
sys.path.insert(0, str(Path(__file__).parent))
