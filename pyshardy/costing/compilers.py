"""What is known of compilers: what estimates assume of accelerators, and XLA for CPUs, by which they are checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Order(Enum):
    """In which order kernels run.

    Attributes:
        PROGRAM: As the program has them.
        BREADTH: Those first that could have started first, as XLA schedules for CPUs.
        MEMORY: At every step the one that needs least memory, as schedulers for accelerators aim at.
    """

    PROGRAM = "program"
    BREADTH = "breadth"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Compiler:
    """What is known of a compiler.

    Attributes:
        order: In which order it runs kernels.
        alignment: Buffers start at multiples of so many bytes.
        copies_for_products: Whether batched products need operands whose dimensions are in groups.
        splits_all_to_all: Whether an all-to-all sends one array per device, each with memory of its own.
        copies_for_gathers: Whether gathering along another dimension than the first takes a copy.
        copies_first_state: Whether a loop that starts from constants or arguments copies them first.
        copies_overwritten: Whether it copies what is overwritten before all that read it need have run.
        expands_pooling: Whether gradients of max-pooling become a search for places and a scatter.
        joined_bytes: All-reduces over the same devices that do not wait for one another become one, up to so many
            bytes; 0 for never.
        recomputes: Whether kernels make a value of several arrays each for themselves.
        library_elements: From how many elements on a library reduces arrays; 0 for never.
        sinks_broadcasts: Whether element-wise ops run before what they read is spread.
        keeps_reshapes: Whether a reshape is an op to it, which kernels end at and are joined to.
        sums_inner_products: Whether a product of vectors becomes a multiplication and a sum.
        hoists: Whether it computes before a loop what no round changes.
        packs: Whether the holes between buffers count.
    """

    order: Order = Order.PROGRAM
    alignment: int = 1
    copies_for_products: bool = False
    splits_all_to_all: bool = False
    copies_for_gathers: bool = False
    copies_first_state: bool = False
    copies_overwritten: bool = False
    expands_pooling: bool = False
    joined_bytes: int = 0
    sinks_broadcasts: bool = False
    keeps_reshapes: bool = False
    sums_inner_products: bool = False
    hoists: bool = False
    packs: bool = False
    recomputes: bool = False
    library_elements: int = 0

    @property
    def adds_ops(self) -> bool:
        """Whether it adds anything to a program."""
        return self.copies_for_products or self.splits_all_to_all or self.copies_for_gathers or self.copies_first_state


ACCELERATOR = Compiler(order=Order.PROGRAM)
"""What is assumed of accelerators: layouts that fit, no copies."""
XLA_ON_CPU = Compiler(
    order=Order.BREADTH,
    alignment=64,
    copies_for_products=True,
    splits_all_to_all=True,
    copies_for_gathers=True,
    copies_first_state=True,
    copies_overwritten=True,
    expands_pooling=True,
    joined_bytes=1 << 62,
    sinks_broadcasts=True,
    keeps_reshapes=True,
    sums_inner_products=True,
    hoists=True,
    packs=True,
    recomputes=True,
    library_elements=4096,
)
"""XLA's compiler for CPUs, by which estimates of memory are checked."""
