"""One of the processes of `test_processes.py`: how it joins, its number, the port of process 0, and what happens."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import jax
import numpy as np

import pyshardy
from pyshardy.errors import ShardyError

PROCESSES = 2
ENVIRONMENT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
"""What the processes need in theirs."""
PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[0, 4, 1, 5, 2, 6, 3, 7]>
func.func @main(%a: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %b: tensor<12x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}, %c: tensor<f32>)
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, tensor<f32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8x12xf32>, tensor<12x16xf32>) -> tensor<8x16xf32>
  %1 = stablehlo.negate %a : tensor<8x12xf32>
  %2 = stablehlo.add %c, %c : tensor<f32>
  return %0, %1, %2 : tensor<8x16xf32>, tensor<8x12xf32>, tensor<f32>
}"""
"""Devices 0 to 3 are of one process, 4 to 7 of the other: every group along either axis has some of both."""
SAYS = "worker says "
"""How a line of what a process tells the test begins."""
LOST_AFTER = 6
"""After how many seconds without a sign of life a process counts as dead."""
WAIT = 15
"""How many seconds to wait for a process that is alive and does not come."""
DIES = 3
"""Exit status of a process that dies."""


def inputs() -> list[np.ndarray]:
    """Whole numbers, whose sums are exact."""
    a = np.arange(96, dtype=np.float32).reshape(8, 12) % 7 - 3
    b = np.arange(192, dtype=np.float32).reshape(12, 16) % 5 - 2
    return [a, b, np.float32(4)]


def join(how: str, process: int, port: int) -> None:
    """Join the other process, with pyshardy or as JAX does it."""
    address = f"127.0.0.1:{port}"
    if how == "connect":
        pyshardy.initialize_distributed(address, PROCESSES, process, timeout_s=60, lost_after_s=LOST_AFTER, wait_s=WAIT)
    else:
        jax.distributed.initialize(address, PROCESSES, process, initialization_timeout=60)


def say(text: str) -> None:
    """Tell the test something; Gloo prints to standard output."""
    print(f"{SAYS}{text!r}", file=sys.stderr, flush=True)


def check(outputs: tuple[jax.Array, ...], expected: list[np.ndarray]) -> int:
    """Compare what this process has with the whole answer; how many shards it has."""
    count = 0
    for output, whole in zip(outputs, expected, strict=True):
        assert output.shape == whole.shape
        for shard in output.addressable_shards:
            np.testing.assert_array_equal(shard.data, whole[shard.index])
            count += 1
    return count


def main(how: str, process: int, port: int, ending: str) -> None:
    """Run the program and compare; then once more, placed, or without the other process."""
    join(how, process, port)
    assert (jax.device_count(), jax.local_device_count()) == (8, 4)
    text = PROGRAM.replace("stablehlo.negate", "stablehlo.abs") if ending == "differs" and process else PROGRAM
    partition = pyshardy.partition(pyshardy.load(text))
    a, b, c = inputs()
    if ending == "differs":
        try:
            pyshardy.run(partition, a, b, c)
        except ShardyError as error:
            say(f"refused: {error}")
        return
    expected = [a @ b, -a, c + c]
    outputs = pyshardy.run(partition, a, b, c)
    say(f"checked {check(outputs, expected)} shards")
    if ending == "placed":
        again = pyshardy.run(partition, -outputs[1], b, outputs[2] / 2)
        say(f"checked {check(again, expected)} shards")
        return
    if process == (ending == "stops first"):
        pass
    elif ending == "stops amid":
        threading.Timer(2, os.kill, (os.getpid(), signal.SIGSTOP)).start()
    elif ending == "dies amid":
        threading.Timer(2, os._exit, (DIES,)).start()
    elif ending == "sleeps":
        time.sleep(3600)
    elif ending.startswith("stops"):
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        os._exit(DIES)
    try:
        while True:
            pyshardy.run(partition, a, b, c)
    except ShardyError as error:
        say(f"refused: {error}")
    os._exit(0)  # JAX waits for the dead process at its own exit


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
