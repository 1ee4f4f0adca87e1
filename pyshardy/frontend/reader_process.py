"""The process that reads a module for `isolated.py`: a line of JSON and the content on standard input, the same out.

Nobody else starts it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from typing import Any

from pyshardy.bytecode.locations import has_lost_range
from pyshardy.errors import ShardyError
from pyshardy.frontend.from_text import read_module
from pyshardy.frontend.isolated import error_data


def main() -> None:
    """Read, verify, write; end without taking anything apart."""
    head, _, content = sys.stdin.buffer.read().partition(b"\n")
    request: dict[str, Any] = json.loads(head)
    _limit(request["seconds"], request["memory"])
    answer, written = _answer(content, request["name"], request["allow"])
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + written)
    sys.stdout.buffer.flush()
    os._exit(0)


def _answer(content: bytes, name: str, allow_unregistered_dialects: bool) -> tuple[dict[str, Any], bytes]:
    """What became of the module, and the module: bytecode, or text if it has locations that bytecode does not keep."""
    try:
        module, source = read_module(content, name, allow_unregistered_dialects)
        is_text = has_lost_range(source)
        return {"is_text": is_text}, module.text(debug_info=True).encode() if is_text else module.bytecode()
    except ShardyError as error:
        return error_data(error), b""
    except MemoryError:
        return error_data(ShardyError("reading a module", where=name, got="more than memory can hold")), b""


def _limit(seconds: int, memory: int) -> None:
    """Let the system end this process when it takes more, and let it write no file and no core dump."""
    with suppress(ImportError):  # of a system without limits
        import resource

        spent = int(time.process_time()) + 1
        limits = {"RLIMIT_CPU": spent + seconds, "RLIMIT_AS": memory, "RLIMIT_CORE": 0, "RLIMIT_FSIZE": 0}
        for name, limit in limits.items():
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            with suppress(OSError, ValueError):  # of a system that does not know this one
                resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


if __name__ == "__main__":
    main()
