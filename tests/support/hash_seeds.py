"""What code prints in processes that hash texts in different orders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def printed_under_hash_seeds(code: str, seeds: tuple[str, ...] = ("0", "1", "2")) -> set[bytes]:
    """The different outputs of the code, one if the order of hashes does not matter."""
    path = os.pathsep.join(map(str, (_ROOT, _ROOT / "tests")))
    return {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
        ).stdout
        for seed in seeds
    }
