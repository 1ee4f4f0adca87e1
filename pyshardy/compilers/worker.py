"""The process that compiles: `python -m pyshardy.compilers.worker FOLDER`. It imports jaxlib, not jax.

The folder has `job.json` and `program.mlirbc`; the process writes `answer.json`, and the compiler's dump to `dump/`. As
soon as the program is partitioned, it ends, unless the job is to compile to the end.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARTITIONED = ("*.after_tpu-spmd-partitioning.*.hlo.pb", "*.after_spmd-partitioning.*.hlo.pb")
BEFORE = "*.before_shardy-xla.hlo.pb"
DECIDED = "shardy/*/02.after_propagation.mlir"
_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "TPU_LOG_DIR": "disabled",
    "TPU_STDERR_LOG_LEVEL": "1",
    "TPU_MIN_LOG_LEVEL": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TF_CPP_MIN_LOG_LEVEL": "1",
}
"""What libtpu needs in order to compile where no TPU is, beside other processes, and to warn on standard error."""
_LOOK_S = 0.01


def main(folder: Path) -> None:
    """Do the job of a folder."""
    job = json.loads((folder / "job.json").read_text())
    os.environ.update(_ENVIRONMENT)
    if job["platform"] == "cuda":  # autotuning needs a GPU
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_autotune_level=0"
    try:
        client, devices = _connect(job)
        options = _options(job, devices, folder / "dump")
        if not job["to_the_end"]:
            threading.Thread(target=_end_when_partitioned, args=(folder,), daemon=True).start()
        started = time.monotonic()
        compiled = _compile(client, devices, (folder / "program.mlirbc").read_bytes(), options)
        seconds = time.monotonic() - started
        (folder / "compiled.txt").write_text(compiled.hlo_modules()[0].to_string())
        _answer(folder, stage="compiled", seconds=seconds, memory=_memory(compiled))
    except Exception as error:  # whatever the compiler raises is its answer
        _answer(folder, stage="failed", error=f"{type(error).__name__}: {error}")
    os._exit(0)  # without the time that the libraries take to end


def _connect(job: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The client of a compiler, and its devices."""
    from jaxlib import xla_client

    if job["platform"] == "cpu":
        client: Any = xla_client.make_cpu_client(num_devices=job["devices"])
        return client, list(client.devices())
    api = xla_client.load_pjrt_plugin_dynamically(job["platform"], job["library"])
    xla_client.initialize_pjrt_plugin(job["platform"])
    if job["platform"] == "tpu":
        slices = {"num_slices": job["slices"]} if job["slices"] > 1 else {}
        topology: Any = xla_client.make_tfrt_tpu_c_api_device_topology(f"{job['chip']}:{job['topology']}", **slices)
    else:
        chip = {"target_config": job["description"], "topology": job["topology"]}
        topology = xla_client.make_c_api_device_topology(api, job["chip"], **chip)
    devices = topology._make_compile_only_devices()
    if len(devices) != job["devices"]:
        raise RuntimeError(f"the topology has {len(devices)} devices, needed {job['devices']}")
    return devices[0].client, devices


def _options(job: dict[str, Any], devices: list[Any], dump: Path) -> Any:
    """The compile options: one program for all devices, partitioned by shardings, dumped around Shardy."""
    import numpy as np
    from jaxlib import xla_client

    count, options = len(devices), xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = 1, count
    options.device_assignment = xla_client.DeviceAssignment.create(
        np.array([device.id for device in devices]).reshape(1, count)
    )
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, count
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    build.allow_spmd_sharding_propagation_to_parameters = job["open_inputs"]
    build.allow_spmd_sharding_propagation_to_output = job["open_outputs"]
    options.env_option_overrides = [
        *map(tuple, job["options"]),
        ("xla_dump_to", str(dump)),
        ("xla_dump_hlo_pass_re", "shardy-xla|(tpu-)?spmd-partitioning"),
        ("xla_dump_hlo_as_proto", True),
        ("xla_dump_hlo_as_text", False),
    ]
    return options


def _compile(client: Any, devices: list[Any], program: bytes, options: Any) -> Any:
    from jaxlib import xla_client

    listed = xla_client.DeviceList(tuple(devices))
    if hasattr(client, "compile_and_load") and client.platform == "cpu":
        return client.compile_and_load(program, listed, options)
    from jaxlib.mlir import ir

    from pyshardy.ir.context import make_context

    with make_context():
        return client.compile(ir.Module.parse(program), listed, options)


def _memory(compiled: Any) -> dict[str, int]:
    """The bytes per device of a compiled program, by kind."""
    found = compiled.get_compiled_memory_stats() if hasattr(compiled, "get_compiled_memory_stats") else None
    kinds = ("argument", "output", "alias", "temp", "generated_code")
    return {} if found is None else {kind: getattr(found, f"{kind}_size_in_bytes") for kind in kinds}


def _end_when_partitioned(folder: Path) -> None:
    while True:
        if any(_is_whole(path) for path in found(folder / "dump", *PARTITIONED)):
            _answer(folder, stage="partitioned")
            os._exit(0)
        time.sleep(_LOOK_S)


def found(dump: Path, *patterns: str) -> Iterator[Path]:
    """The files of a dump that match any of some patterns, in order."""
    for pattern in patterns:
        yield from sorted(dump.glob(pattern))


def _is_whole(path: Path) -> bool:
    """Whether a file has all of an `HloProto`, whose only field has a length."""
    with path.open("rb") as file:
        head = file.read(11)
    if not head:
        return False
    length = shift = 0
    for count, byte in enumerate(head[1:], 2):
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return path.stat().st_size >= count + length
    return False


def _answer(folder: Path, **facts: Any) -> None:
    (folder / "answer.part").write_text(json.dumps(facts))
    (folder / "answer.part").replace(folder / "answer.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
