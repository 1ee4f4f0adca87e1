"""Compiles programs of the corpus with XLA's dumps switched on: `python dump_programs.py DIRECTORY NAME...`.

A process of its own, as XLA reads its flags once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    directory, *names = sys.argv[1:]
    flags = (
        "--xla_force_host_platform_device_count=8 --xla_dump_hlo_pass_re=shardy-xla --xla_backend_optimization_level=0"
    )
    os.environ["XLA_FLAGS"] = f"{flags} --xla_dump_to={directory}/dump"
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from jaxlib import _jax

    from programs import PROGRAMS

    for name in names:
        lowered = PROGRAMS[name].lower()
        shardy = Path(directory, "dump", "shardy")
        before = set(shardy.glob("*")) if shardy.exists() else set()
        lowered.compile()
        (made,) = sorted(set(shardy.glob("*")) - before)
        made.rename(made.with_name(f"module.{name}"))
        hlo = _jax.mlir.mlir_module_to_xla_computation(lowered.as_text(debug_info=True))
        Path(directory, f"{name}.txt").write_text(hlo.get_hlo_module().to_string())
