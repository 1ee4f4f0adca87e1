"""The process that prices changes of a program. Only `pricing_workers.py` starts it."""

from __future__ import annotations

import os
import pickle
import sys
from functools import partial
from pathlib import Path

from pyshardy.checkup.pricing import Pricer
from pyshardy.checkup.pricing_workers import PricedProgram, pickles
from pyshardy.ir.module import Module
from pyshardy.source.places import set_user_code


def main() -> None:
    """Price until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    price = None
    for request in pickles(sys.stdin.buffer):
        if isinstance(request, PricedProgram):
            set_user_code(*request.sources)
            price = partial(Pricer(*request.setting).price, _module(request))
            continue
        number, change = request
        assert price is not None
        pickle.dump((number, price(change)), answers)
        answers.flush()


def _module(program: PricedProgram) -> Module:
    content = Path(program.file).read_bytes()
    return Module.parse(content, name=program.name, allow_unregistered_dialects=program.allows_unregistered)


if __name__ == "__main__":
    main()
