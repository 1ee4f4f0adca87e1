"""Which inputs a step returns anew, and which it only reads."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.functions import is_donated, main_function
from pyshardy.ir.module import Module
from pyshardy.searching.autopartition.ties import ties_of


def ties_in(module: Module, inputs: Sequence[InterfaceTensor], outputs: Sequence[InterfaceTensor]) -> dict[int, int]:
    """By the position of an input that of the output that replaces it in the next step.

    Args:
        module: The program.
        inputs: Its inputs.
        outputs: Its outputs.
    """
    main = main_function(module.root)
    donated = [place for place, one in enumerate(inputs) if is_donated(main, one.index)]
    return ties_of(inputs, outputs, donated)


def unreturned(module: Module) -> list[InterfaceTensor]:
    """The inputs that a step does not return anew, such as a batch or a frozen model.

    Args:
        module: The program.
    """
    inputs = input_tensors(module.root)
    ties = ties_in(module, inputs, output_tensors(module.root))
    return [one for place, one in enumerate(inputs) if place not in ties]
