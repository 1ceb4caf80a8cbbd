"""A persistent GEMM of Triton that polls the flags of a plan, or raises them: one kernel beside one plan.

A gathered part is multiplied as soon as the plan has raised its flag, the rank's own first; a part whose sum is
scattered goes to its owner when all of its tiles are made, the rank's own last. Without GPUs Triton's interpreter runs
the kernels (TRITON_INTERPRET=1, before triton is imported).
"""

import os

import torch
import triton
import triton.language as tl

import mscclc

PLANS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "plans", "overlap")

DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


@triton.jit
def _raised(flag):
    return tl.atomic_add(flag, 0, sem="acquire", scope="gpu")


@triton.jit
def _product(
    x, w, made, flags, calls, width, begin, tiles_of_part, tiles_across, parts,
    columns: tl.constexpr, waits: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """made = x w, of x by rows and w by columns: parts of rows in turn from part `begin` on. `waits`: each part until its
    flag is complete; else raises it once for each tile. All sizes are multiples of the blocks."""
    epoch = tl.load(calls) + 1
    tiles = tiles_of_part * tiles_across
    tile = tl.program_id(0)
    while tile < parts * tiles:
        part = (begin + tile // tiles) % parts
        inside = tile % tiles
        m = part * tiles_of_part + inside % tiles_of_part
        n = inside // tiles_of_part
        if waits:
            while _raised(flags + part) - epoch < 0:
                pass
        rows = m * BM + tl.arange(0, BM)
        across = n * BN + tl.arange(0, BN)
        inner = tl.arange(0, BK)
        left = x + rows[:, None].to(tl.int64) * columns + inner[None, :]
        right = w + across[None, :].to(tl.int64) * columns + inner[:, None]
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, columns, BK):
            total = tl.dot(tl.load(left + k), tl.load(right + k), total, input_precision="ieee")
        to = made + rows[:, None].to(tl.int64) * width + across[None, :]
        tl.store(to, total.to(made.dtype.element_ty))
        if not waits:
            tl.debug_barrier()  # all threads have stored
            tl.atomic_add(flags + part, 1, sem="release", scope="gpu")
        tile += tl.num_programs(0)


def _largest(size, most):
    """A power of two that divides it, of at least 16. ValueError: there is none."""
    found = next((block for block in (256, 128, 64, 32, 16) if block <= most and size % block == 0), None)
    if found is None:
        raise ValueError(f"{size} is no multiple of 16")
    return found


class PolledProduct:
    """The product of a Layer (overlap_modes), its plan, and memory of its own that peers access."""

    def __init__(self, layer, program, chunks):
        """Collective. `program`: allgather_gemm, allgather_gemm_copy_engine or gemm_reducescatter."""
        place = layer.place
        self._layer, self._place, self._waits = layer, place, layer.kind == "gather"
        self._parts = place.ranks * chunks
        total, columns = layer.whole.shape
        width = layer.w.shape[1]
        of_part = total // self._parts
        self._blocks = {"BM": _largest(of_part, 128), "BN": _largest(width, 256), "BK": _largest(columns, 64)}
        self._columns = columns
        tiles = of_part // self._blocks["BM"], width // self._blocks["BN"]
        self._shape = width, (place.rank * chunks + (0 if self._waits else chunks)) % self._parts, *tiles
        defines = {"R": place.ranks, "C": chunks, **({} if self._waits else {"K": tiles[0] * tiles[1]})}
        shared = layer.whole if self._waits else layer.made
        self._memory = mscclc.SymmetricMemory(shared.nbytes, place.comm)
        memory = self._memory.buffer()
        on_gpu = place.device.type == "cuda"
        bytes = torch.as_tensor(memory, device=place.device) if on_gpu else torch.frombuffer(memory, dtype=torch.uint8)
        self._shared = bytes.view(shared.dtype).view(shared.shape)
        plan = mscclc.compile(os.path.join(PLANS, program + ".mscl"), **defines)
        self._plan = place.comm.load(plan, shared.nbytes, DTYPES[shared.dtype])
        self._name = "ready" if self._waits else "tiles"
        self._flags = torch.zeros(self._parts, dtype=torch.int32, device=place.device)
        self._calls = torch.zeros(1, dtype=torch.int32, device=place.device)
        self._in_place = program.endswith("copy_engine")
        self._budget = 1 if self._in_place else 2 * chunks
        # No part, so no tile, and no call. CUDA loads a kernel when it is first launched, and may wait for the GPU then: for a plan
        # that waits for this one it would do so without end.
        self._multiply(1, -self._parts)
        self._calls += 0
        place.synchronize()

    def __call__(self):
        """Queues both. The product of gathered rows, or this rank's part of the sum."""
        layer = self._layer
        given, out = (layer.x, self._shared) if self._waits else (self._shared, layer.part)
        if self._in_place:
            given = self._shared.view(self._place.ranks, *layer.x.shape)[self._place.rank]
            given.copy_(layer.x)
        if self._place.device.type != "cuda":
            work = self._run(given, out, None)
            self._multiply(1, self._parts)
            work.wait()
        else:
            main, side = torch.cuda.current_stream(), self._place.side
            side.wait_stream(main)
            # Of what waits, the one whose blocks are few comes first.
            self._run(given, out, side.cuda_stream)
            self._place.comm._unfinished.clear()  # the buffers live as long as the layer
            programs = torch.cuda.get_device_properties(self._place.device).multi_processor_count - self._budget
            self._multiply(programs, self._parts)
            main.wait_stream(side)
        self._calls += 1
        return layer.made if self._waits else layer.part

    def _run(self, given, out, stream):
        return self._plan.run(given, out, stream=stream, flags={self._name: self._flags}, budget=self._budget,
                              symmetric=True)  # fmt: skip

    def _multiply(self, programs, parts):
        layer = self._layer
        x, made = (self._shared, layer.made) if self._waits else (layer.x, self._shared)
        counts = {"num_warps": 8, "num_stages": 3} if self._place.device.type == "cuda" else {}
        _product[(programs,)](
            x, layer.w, made, self._flags, self._calls, *self._shape, parts,
            self._columns, self._waits, **self._blocks, **counts,
        )  # fmt: skip
