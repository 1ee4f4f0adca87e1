"""Describes compilers: the one that estimates assume for accelerators, and XLA for CPUs, to check estimates with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from pyshardy.costing.hardware import Hardware
from pyshardy.costing.host_memory import HOST_COPIES
from pyshardy.rules.opspec import op_names


class Order(Enum):
    """The order in which kernels run.

    Attributes:
        PROGRAM: The order of the program.
        BREADTH: First the kernels that could have started first, as XLA schedules for CPUs.
        FREEING: The order of the program, except that some kernels run as soon as they may: those that need no more
            memory than they free. Schedulers for accelerators do so.
    """

    PROGRAM = "program"
    BREADTH = "breadth"
    FREEING = "freeing"


@dataclass(frozen=True, slots=True)
class Compiler:
    """The properties of a compiler that matter for cost.

    Attributes:
        order: The order in which it runs kernels.
        alignment: The number of bytes to which it aligns the start of a buffer.
        copies_for_products: Whether batched products need operands whose dimensions are in groups.
        splits_all_to_all: Whether an all-to-all sends one array per device, each with memory of its own.
        copies_for_gathers: Whether gathering along another dimension than the first takes a copy.
        copies_first_state: Whether a loop that starts from constants or arguments copies them first.
        copies_overwritten: Whether it copies a value that is overwritten before all its readers must have run.
        expands_pooling: Whether gradients of max-pooling become a search for places and a scatter.
        hides: The kinds of collectives that run beside kernels. It orders kernels so that they do, and computes late
            what only these collectives read.
        saves: Whether it chooses by memory which of several possible kernels runs next.
        far_seconds: How long it expects a collective between nodes to take when it orders kernels, whatever is sent; 0
            if it expects what the network takes.
        narrows: The kinds of collectives that send the narrower type where a conversion of the result follows.
        widens_late: Those that send the narrower type where the operand was converted to more bits.
        multiplies_bf16: Whether products of the default precision read f32 as bf16. Then values that only such products
            read are kept and sent as bf16.
        joins: The kinds of collectives that it joins, if they are independent and over the same devices.
        joined_bytes: Up to how many bytes of results it joins them.
        sums_in_place: Whether an all-reduce writes its result where its operand was.
        in_parts: The ops whose result the compiler returns as one of several. No reader writes where such a part was,
            nor where a result of a loop or of a kernel with several was; None if readers may.
        recomputes: Whether each kernel computes for itself a value that reads several arrays.
        repeats_costly: Whether kernels compute a costly value for themselves where reading its source moves less.
        library_elements: The number of elements from which a library reduces arrays; 0 for never.
        sinks_broadcasts: Whether it moves elementwise ops above the broadcasts that they read.
        keeps_reshapes: Whether it keeps a reshape as an op. A kernel then ends at the reshape, or contains it.
        promotes_sums: Whether it adds 16-bit floats of several devices as f32.
        negates_sums: Whether a sum of negated values becomes the negated sum.
        sums_inner_products: Whether a product of vectors becomes a multiplication and a sum.
        sums_vector_products: Whether a small product with vectors becomes a multiplication and a sum.
        carries_repeated: Whether an array of one number that a loop reads from outside takes memory.
        turns_products: Whether products that meet others in another order of dimensions are copied.
        keeps_barriers: Whether what follows an optimization barrier waits for all that the barrier reads.
        hoists: Whether it moves loop invariants before the loop.
        packs: Whether the holes between buffers count.
        merges_kernels: Whether kernels over the same elements become one of several results.
        fills_in_scatters: Whether a scatter writes the zeros that it adds to.
        fuses_into_products: Whether products compute their operands, and what follows, element by element.
        alone: The ops that are kernels of their own, though they compute element by element.
        compares_places: Whether a scatter with one update per row becomes a comparison of every place with an index,
            before shardings propagate.
        tiles: Whether arrays are kept in tiles, with the last two dimensions of their layout rounded up.
        delays_loops: Whether it runs products that are cut into parts right before their results are read.
        merges_gathers: Two equal all-gathers become one if their longest paths to the end differ by at most this many
            ops; 0 if it keeps equal collectives.
        softmax_row: The most elements of a row with which a product computes the softmax; 0 if products do not.
    """

    order: Order = Order.PROGRAM
    alignment: int = 1
    copies_for_products: bool = False
    splits_all_to_all: bool = False
    copies_for_gathers: bool = False
    copies_first_state: bool = False
    copies_overwritten: bool = False
    expands_pooling: bool = False
    hides: frozenset[str] = frozenset()
    saves: bool = False
    far_seconds: float = 0.0
    narrows: frozenset[str] = frozenset()
    widens_late: frozenset[str] = frozenset()
    multiplies_bf16: bool = False
    joins: frozenset[str] = frozenset()
    joined_bytes: int = 0
    sums_in_place: bool = False
    in_parts: frozenset[str] | None = None
    sinks_broadcasts: bool = False
    keeps_reshapes: bool = False
    promotes_sums: bool = False
    negates_sums: bool = False
    sums_inner_products: bool = False
    sums_vector_products: bool = False
    carries_repeated: bool = False
    turns_products: bool = False
    keeps_barriers: bool = False
    hoists: bool = False
    packs: bool = False
    recomputes: bool = False
    merges_kernels: bool = False
    fuses_into_products: bool = False
    alone: frozenset[str] = frozenset()
    compares_places: bool = False
    tiles: bool = False
    delays_loops: bool = False
    merges_gathers: int = 0
    softmax_row: int = 0
    fills_in_scatters: bool = False
    repeats_costly: bool = False
    library_elements: int = 0

    @property
    def adds_ops(self) -> bool:
        """Whether the compiler adds any ops to a program."""
        return self.copies_for_products or self.splits_all_to_all or self.copies_for_gathers or self.copies_first_state


ACCELERATOR = Compiler(order=Order.FREEING, keeps_barriers=True, repeats_costly=True, fills_in_scatters=True)
"""The assumed compiler of accelerators: all layouts fit, and nothing is copied."""
_KINDS = "all_gather all_reduce all_to_all collective_broadcast collective_permute ragged_all_to_all reduce_scatter"
_MOVING = frozenset(("all_gather", "all_to_all", "collective_broadcast", "collective_permute"))
XLA_ON_GPU = replace(
    ACCELERATOR,
    merges_kernels=True,
    hides=frozenset((*_KINDS.split(), *HOST_COPIES)),
    saves=True,
    far_seconds=5e-3,
    narrows=_MOVING,
    widens_late=_MOVING,
    joins=frozenset(("all_gather", "all_reduce", "collective_permute", "reduce_scatter")),
    joined_bytes=30 * 2**20 + 7,
    sums_in_place=True,
    in_parts=frozenset(("stablehlo.convolution", *op_names("stablehlo.", _KINDS))),
    sums_vector_products=True,
    carries_repeated=True,
    turns_products=True,
)
"""What is known of XLA for GPUs.

`joined_bytes` is the default of its options `xla_gpu_all_gather_combine_threshold_bytes`, `..._all_reduce_...`,
`..._collective_permute_...` and `..._reduce_scatter_...`. Calls of cuDNN return a workspace too, and collectives are
asynchronous: they start with several results. An all-reduce between nodes, of one number or of 128 MiB, is put beside
18 updates of 280 us or 72 of 70 us; within a node, beside as many as it takes (`tests/compilers/test_order.py`).
"""
XLA_ON_TPU = replace(
    ACCELERATOR,
    fuses_into_products=True,
    narrows=_MOVING | {"all_reduce"},
    widens_late=frozenset(("all_gather",)),
    multiplies_bf16=True,
    joins=frozenset(("all_reduce",)),
    joined_bytes=120 * 2**20,
    in_parts=frozenset(),
    compares_places=True,
    alone=frozenset(("stablehlo.gather",)),
    tiles=True,
    delays_loops=True,
    merges_gathers=102,
    softmax_row=4096,
    hides=frozenset(("all_gather", "collective_permute", *HOST_COPIES)),
)
"""What is known of XLA for TPUs.

All of it was seen in programs compiled for v5e. Of all-reduces of 4 MiB it joins 30, of 16 MiB 7
(`tests/compilers/test_joined.py`). A product computes a softmax with rows of 4,096 elements, and none with rows of
6,144 or 8,192 (`tests/compilers/test_memory.py`). Two all-gathers of one value with
100 ops between them are one, two with 104 are not, and what products alone read is sent as bf16
(`tests/compilers/test_sent.py`). All-reduces and all-to-alls are not asynchronous there.
"""
XLA_ON_CPU = Compiler(
    order=Order.BREADTH,
    alignment=64,
    copies_for_products=True,
    splits_all_to_all=True,
    copies_for_gathers=True,
    copies_first_state=True,
    copies_overwritten=True,
    expands_pooling=True,
    joins=frozenset(("all_reduce",)),
    joined_bytes=1 << 62,
    sinks_broadcasts=True,
    keeps_reshapes=True,
    promotes_sums=True,
    negates_sums=True,
    sums_inner_products=True,
    keeps_barriers=True,
    hoists=True,
    packs=True,
    recomputes=True,
    library_elements=4096,
)
"""XLA's compiler for CPUs; tests compare estimates of memory with it."""


def assumed(hardware: Hardware) -> Compiler:
    """The compiler that estimates assume for a chip."""
    if hardware.merges_kernels:
        return XLA_ON_GPU
    return XLA_ON_TPU if hardware.fuses_into_products else ACCELERATOR
