"""The process in which StableHLO's interpreter runs: a module and arrays on standard input, arrays on standard output.

Both are pickled; only `interpreter.py` starts it.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from pyshardy.ir.context import make_context
from pyshardy.ir.dialects import stablehlo


def evaluate(code: bytes, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of the main function of a module in bytecode."""
    context = make_context()
    with context, ir.Location.unknown():
        stablehlo.register_interpreter_dialect(context)
        context.load_all_available_dialects()
        context.enable_multithreading(True)  # the interpreter's devices are threads, and share the context
        module = ir.Module.parse(code)
        main = next(op for op in module.body.operations if ir.StringAttr(op.attributes["sym_name"]).value == "main")
        types = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs
        return [np.array(found) for found in stablehlo.eval_module(module, list(map(_dense, arrays, types)))]


def _dense(array: np.ndarray, type: ir.Type) -> Any:
    element = ir.RankedTensorType(type).element_type
    data: Any = np.ascontiguousarray(array)
    return ir.DenseElementsAttr.get(data, type=element, shape=list(array.shape))


def main() -> None:
    """Read, evaluate, write."""
    code, arrays = pickle.load(sys.stdin.buffer)
    found = evaluate(code, arrays)
    pickle.dump(found, sys.stdout.buffer)


if __name__ == "__main__":
    main()
