"""Results of which tests look at the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyshardy
from golden.situations import PROGRAMS
from pyshardy.results.pages import describe_result
from pyshardy.results.propagation import Propagation

MLP = Path(__file__).parents[4] / "examples" / "mlp.mlir"


def propagated(name: str) -> Propagation:
    return pyshardy.propagate(pyshardy.load((PROGRAMS / f"{name}.mlir").read_text()), trace=True)


def data_of(name: str) -> dict[str, Any]:
    result = pyshardy.propagate(MLP, trace=True) if name == "mlp" else propagated(name)
    return describe_result(result, hints=False, name=name)
