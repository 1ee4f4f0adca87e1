"""The built-in training step as the program of a command."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple, NoReturn

from pyshardy.api.load import load
from pyshardy.cli.arguments import MOST_EXAMPLE_DEVICES
from pyshardy.cli.progress import stage
from pyshardy.errors import UsageError
from pyshardy.ir.module import Module

_MOST_LAYERS = 10_000
_LARGEST_SIZE = 2**20
_DEVICE_FLAG = "--xla_force_host_platform_device_count"


class Example(NamedTuple):
    """The training step, lowered.

    Attributes:
        module: The program.
        config: Its sizes.
        seconds: The time for lowering.
    """

    module: Module
    config: Any
    seconds: float


def load_example(rest: Sequence[str], devices: int | None = None) -> Example:
    """Lower the training step.

    Args:
        rest: Its sizes as flags.
        devices: The number of virtual CPU devices; by default as many as its mesh has.

    Raises:
        UsageError: Sizes that are not possible.
    """
    from pyshardy.examples import transformer

    config = _config(transformer.Config, rest)
    provide_devices(devices or config.data * config.model)
    try:
        with stage("lowering the training step"):
            start = time.perf_counter()
            lowered = transformer.lower(config)
            seconds = time.perf_counter() - start
    except (ValueError, OverflowError) as error:
        raise UsageError("lowering the example", got=str(error)) from error
    return Example(load(lowered), config, seconds)


def _config(cls: Any, rest: Sequence[str]) -> Any:
    """The sizes of the example from their flags."""
    parser = argparse.ArgumentParser(prog="pyshardy run example", allow_abbrev=False)
    for size in fields(cls):
        parser.add_argument(f"--{size.name}", type=type(size.default), default=size.default)
    parser.error = _refuse  # type: ignore[method-assign]
    values = vars(parser.parse_args(rest))
    for name, value in values.items():
        limit = _MOST_LAYERS if name == "layers" else _LARGEST_SIZE
        if isinstance(value, int) and value > limit:
            _refuse(f"{name} must be at most {limit}: {value}")
    try:
        return cls(**values)
    except ValueError as error:
        _refuse(str(error))


def _refuse(message: str) -> NoReturn:
    raise UsageError(f"reading the sizes of the example: {message}", hint="pyshardy run example --layers 4")


def provide_devices(count: int) -> None:
    """Request this many virtual CPU devices, unless the user has chosen a platform or a number; before JAX is imported.

    Reading HLO makes XLA read its flags, which it does only once, so JAX's own setting is used.

    Raises:
        UsageError: The number is larger than a process can create in reasonable time.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _DEVICE_FLAG not in flags:
        if count > MOST_EXAMPLE_DEVICES:
            raise UsageError(
                "providing virtual CPU devices",
                got=f"a program for {count}",
                needed=f"at most {MOST_EXAMPLE_DEVICES}",
                hint="pyshardy partition and pyshardy show, which need no devices",
            )
        if "pyshardy.ir.hlo" in sys.modules and sys.modules["pyshardy.ir.hlo"].has_converted():
            os.environ.setdefault("JAX_NUM_CPU_DEVICES", str(count))
        else:
            os.environ["XLA_FLAGS"] = f"{flags} {_DEVICE_FLAG}={count}".strip()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
