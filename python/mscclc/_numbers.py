"""The names of what mscclc.h numbers, and the shapes of collectives (ir/contract/collectives.def).

tests/test_numbers.py compares them with both.
"""

from typing import NamedTuple

from .errors import UsageError


class Kind(NamedTuple):
    """A collective: its number, and what its buffers hold. "whole": one part; "rows": one for each
    rank; "counted": rows as long as the call says; "nothing": there is no such buffer. With
    "root(…)" only the root has it."""

    number: int
    input: str
    output: str

    @property
    def root_reads(self):
        """Only the root has an input."""
        return self.input.startswith("root(")

    @property
    def root_writes(self):
        """Only the root has an output."""
        return self.output.startswith("root(")

    def rows(self, side):
        """Whether a buffer ("input" or "output") has a part for each rank."""
        return getattr(self, side) in ("rows", "root(rows)")


KINDS = {
    "allreduce": Kind(1, "whole", "whole"),
    "reduce": Kind(2, "whole", "root(whole)"),
    "allgather": Kind(3, "whole", "rows"),
    "gather": Kind(4, "whole", "root(rows)"),
    "reducescatter": Kind(5, "rows", "whole"),
    "alltoall": Kind(6, "rows", "rows"),
    "alltoallv": Kind(7, "counted", "counted"),
    "broadcast": Kind(8, "root(whole)", "whole"),
    "scatter": Kind(9, "root(rows)", "whole"),
    "sendrecv": Kind(10, "whole", "whole"),
    "barrier": Kind(11, "nothing", "nothing"),
}

# Name: number, bytes.
DTYPES = {
    "f32": (0, 4), "f16": (1, 2), "bf16": (2, 2), "f64": (3, 8), "i32": (4, 4), "u32": (5, 4),
    "i64": (6, 8), "u64": (7, 8), "i8": (8, 1), "u8": (9, 1), "e4m3": (10, 1), "e5m2": (11, 1),
    "e4m3b15": (12, 1),
}  # fmt: skip
DTYPE_DEFAULT = -1

OPS = {"sum": 1, "min": 2, "max": 3, "prod": 4, "avg": 5}

# What the bits of sums keep to (docs/bits.md); None: whatever holds where nothing is said.
ORDERS = {None: 0, "any": 1, "replicated": 2, "ranks": 3, "tree": 4, "exact": 5}

# Products and collectives that overlap.
OVERLAPS = {"allgather_gemm": 1, "gemm_reducescatter": 2, "gemm_allreduce": 3, "alltoall_gemm": 4}


def element_type(name):
    """The number and the width of an element type."""
    return _of(DTYPES, name, "element type")


def op_number(name):
    """The number of a reduction."""
    return _of(OPS, name, "reduction")


def order_number(name):
    """The number of an order of sums; None has one."""
    return _of(ORDERS, name, "order")


def _of(table, name, what):
    try:
        return table[name]
    except (KeyError, TypeError):
        there = ", ".join(known for known in table if known is not None)
        raise UsageError(f"no {what} {str(name)!r}; there are: {there}") from None
