"""The process that reads a module for `isolated.py`: a line of JSON and the content on standard input, the same out.

Only `isolated.py` starts it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from typing import Any

from pyshardy.errors import ShardyError
from pyshardy.frontend.from_text import read_text_or_bytecode
from pyshardy.frontend.isolated import error_data
from pyshardy.ir.bytecode.locations import has_lost_range


def main() -> None:
    """Read, verify, write, and exit without clean-up."""
    head, _, content = sys.stdin.buffer.read().partition(b"\n")
    request: dict[str, Any] = json.loads(head)
    _limit(request["seconds"], request["memory"])
    answer, written = _answer(content, request["name"], request["allow"])
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + written)
    sys.stdout.buffer.flush()
    os._exit(0)


def _answer(content: bytes, name: str, allow_unregistered_dialects: bool) -> tuple[dict[str, Any], bytes]:
    """The outcome, and the module: bytecode, or text if it has locations that bytecode does not keep."""
    try:
        module, source = read_text_or_bytecode(content, name, allow_unregistered_dialects)
        is_text = has_lost_range(source)
        return {"is_text": is_text}, module.text(debug_info=True).encode() if is_text else module.bytecode()
    except ShardyError as error:
        return error_data(error), b""
    except MemoryError:
        return error_data(ShardyError("reading a module", where=name, got="more than memory can hold")), b""


def _limit(seconds: int, memory: int) -> None:
    """Limit the resources of this process, and forbid it to write files and core dumps."""
    with suppress(ImportError):  # systems without limits
        import resource

        spent = int(time.process_time()) + 1
        limits = {"RLIMIT_CPU": spent + seconds, "RLIMIT_AS": memory, "RLIMIT_CORE": 0, "RLIMIT_FSIZE": 0}
        for name, limit in limits.items():
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            with suppress(OSError, ValueError):  # systems without this limit
                resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


if __name__ == "__main__":
    main()
