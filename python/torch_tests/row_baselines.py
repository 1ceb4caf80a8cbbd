"""What row_times.py compares with, by Triton: residual and norm of rows, after a sum of torch's symmetric memory; and
all of it as one kernel, one shot, whose blocks meet through the signal pads of symmetric memory. bf16 alone."""

import triton
import triton.language as tl


@triton.jit
def _norm_row(v, residual, weight, stream, norm, row, columns, eps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    here = at < columns
    before = tl.load(residual + row * columns + at, mask=here, other=0).to(tl.float32)
    rounded = (v + before).to(tl.bfloat16)
    tl.store(stream + row * columns + at, rounded, mask=here)
    wide = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide) / columns + eps)
    own = tl.load(weight + at, mask=here, other=0).to(tl.float32)
    tl.store(norm + row * columns + at, (wide * scale * own).to(tl.bfloat16), mask=here)


@triton.jit
def add_norm(x, residual, weight, stream, norm, columns, eps, BLOCK: tl.constexpr):
    """A row a program."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=0).to(tl.float32)
    _norm_row(v, residual, weight, stream, norm, row, columns, eps, BLOCK)


@triton.jit
def _meet(pads, rank, WORLD: tl.constexpr):
    """This block and the same one of every other rank. A word of a pad goes from 0 to 1 and back."""
    block = tl.program_id(0)
    for p in tl.static_range(WORLD):
        if p != rank:
            there = tl.load(pads + p).to(tl.pointer_type(tl.int32)) + block * WORLD + rank
            while tl.atomic_cas(there, 0, 1, sem="release", scope="sys") != 0:
                pass
    for p in tl.static_range(WORLD):
        if p != rank:
            mine = tl.load(pads + rank).to(tl.pointer_type(tl.int32)) + block * WORLD + p
            while tl.atomic_cas(mine, 1, 0, sem="acquire", scope="sys") != 1:
                pass
    tl.debug_barrier()


@triton.jit
def one_shot(
    buffers, pads, rank, residual, weight, stream, norm, rows, columns, eps, WORLD: tl.constexpr, BLOCK: tl.constexpr
):
    """All of it: each rank reads the rows of all, in the order of the ranks. `buffers`, `pads`: addresses."""
    _meet(pads, rank, WORLD)
    at = tl.arange(0, BLOCK)
    here = at < columns
    row = tl.program_id(0).to(tl.int64)
    while row < rows:
        v = tl.zeros((BLOCK,), tl.float32)
        for p in tl.static_range(WORLD):
            x = tl.load(buffers + p).to(tl.pointer_type(tl.bfloat16))
            v += tl.load(x + row * columns + at, mask=here, other=0).to(tl.float32)
        _norm_row(v.to(tl.bfloat16).to(tl.float32), residual, weight, stream, norm, row, columns, eps, BLOCK)
        row += tl.num_programs(0)
    tl.debug_barrier()
    _meet(pads, rank, WORLD)
