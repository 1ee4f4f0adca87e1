"""The dumps that XLA writes before and after Shardy, from a separate process. For tests only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
DEVICES = 8
_FLAGS = (
    f"--xla_force_host_platform_device_count={DEVICES} --xla_dump_to={{folder}} --xla_dump_hlo_pass_re=shardy-xla "
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
"""XLA writes what it hands to Shardy, and what Shardy makes of it, where passes of that name are dumped."""


class XlaFailed(Exception):
    """XLA does not compile a program."""


class XlaProcess:
    """Compiles modules for eight virtual CPU devices in a process of its own, and hands out XLA's dumps.

    Use it as a context manager.

    Args:
        folder: Where the dumps go.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> XlaProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            self._process.wait()
            self._process = None

    def dumps(self, text: str) -> dict[str, str]:
        """The modules by stage: "00" before Shardy's import, "01" before propagation, "02" after it.

        Args:
            text: A module for eight devices, with locations or without.

        Raises:
            XlaFailed: XLA refuses the module, or ends its process.
        """
        if self._process is None:
            self._process = self._start()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._stop()
            raise XlaFailed("XLA ended its process")
        error: str | None = json.loads(answer)
        if error is not None:
            raise XlaFailed(error)
        (folder,) = (self.folder / "shardy").iterdir()
        return {path.name[:2]: path.read_text() for path in folder.iterdir()}

    def _start(self) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "XLA_FLAGS": _FLAGS.format(folder=self.folder),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
        }
        command = [sys.executable, "-m", "support.xla", str(self.folder)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def _serve(folder: Path) -> None:
    import shutil

    for line in sys.stdin:
        shutil.rmtree(folder, ignore_errors=True)
        error = None
        try:
            _compile(json.loads(line))
        except Exception as found:  # whatever XLA says is the answer
            error = str(found) or type(found).__name__
        print(json.dumps(error), flush=True)


def _compile(text: str) -> Any:
    """Compile a module as `jax.jit` does, with shardings left to Shardy where the module gives none."""
    import numpy as np
    from jax._src import compiler, xla_bridge
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    backend = xla_bridge.get_backend("cpu")
    options = compiler.get_compile_options(1, DEVICES, np.arange(DEVICES).reshape(1, DEVICES))
    build = options.executable_build_options
    build.use_shardy_partitioner = True
    build.use_spmd_partitioning = True
    with mlir.make_ir_context() as context:
        module = ir.Module.parse(text, context)
        main = next(op for op in module.body.operations if "main" in str(op.operation.attributes["sym_name"]))
        signature = main.attributes["function_type"].value
        build.allow_spmd_sharding_propagation_to_parameters = _are_free(main, "arg_attrs", len(signature.inputs))
        build.allow_spmd_sharding_propagation_to_output = _are_free(main, "res_attrs", len(signature.results))
        devices = xla_client.DeviceList(tuple(backend.local_devices()[:DEVICES]))
        return compiler.backend_compile_and_load(backend, module, devices, options, [])


def _are_free(main: Any, name: str, count: int) -> list[bool]:
    """For every argument or result whether it has no sharding; XLA wants one at least."""
    if name not in main.attributes:
        return [True] * max(count, 1)
    return ["sdy.sharding" not in entry for entry in main.attributes[name]] or [True]


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
