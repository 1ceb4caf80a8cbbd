"""What overlap_times.py times: one layer's product and collective, done in each of several ways on the same tensors."""

import contextlib
import functools
import importlib.util
import os
import warnings

import mscclc
import torch.distributed._symmetric_memory  # noqa: F401
import torch
import torch.distributed as dist

from mscclc import ops

CHUNKS = {"mscclc": (1, 2, 4, 8), "copy_engine": (1, 2, 4)}
HAND = (2, 4)
# A GEMM of Triton that polls or raises the flags of these plans of plans/overlap, of so many chunks.
POLLED = {"gather": ("allgather_gemm", "allgather_gemm_copy_engine"), "scatter": ("gemm_reducescatter",)}
POLLED_CHUNKS = (1, 2, 4)


NATIVE = "TORCH_SYMM_MEM_ENABLE_NATIVE_ASYNC_TP"  # in the environment: torch's op may take a kernel that polls flags
OURS = ("mscclc", "copy_engine", "serial")
WHOLE = " return_A"  # ends the names of ways that give what was gathered or exchanged, too


class Layer:
    """A product of a layer, with buffers: kind "gather" (x of all ranks times w), "scatter" (parts of x times w),
    "reduce" (the same, and all ranks get the sum) or "exchange" (the parts of x that all ranks send here, times w)."""

    def __init__(self, kind, rows, columns, width, place):
        """x of all ranks has `rows` x `columns`, w `columns` x `width`, at each rank. Of 8 bits both have a scale."""
        self.kind, self.place, self.ranks, self.rank = kind, place, place.ranks, place.rank
        own = rows // self.ranks if kind == "gather" else rows
        generator = torch.Generator(place.device).manual_seed(1 + place.rank)
        narrow = place.dtype == torch.float8_e4m3fn
        how = {"dtype": torch.float32 if narrow else place.dtype, "device": place.device, "generator": generator}
        make = lambda *shape: torch.randn(*shape, **how)  # noqa: E731
        self.x = make(own, columns).to(place.dtype)
        w, scale = make(width, columns), columns**-0.5
        self.w = (w if narrow else w * scale).to(place.dtype).t()  # as nn.Linear has it
        self.scales = [torch.full((1,), one, device=place.device) for one in (0.5, 2 * scale)] if narrow else None
        self.whole = self.x if kind in ("scatter", "reduce") else self.x.new_empty(rows, columns)
        self.made = self.x.new_empty(rows, width, dtype=torch.bfloat16 if narrow else place.dtype)
        self.part = self.made.new_empty(rows // self.ranks, width)
        self.flops = 2 * rows * columns * width
        moved = self.made if self.whole is self.x else self.whole
        times = 2 if kind == "reduce" else 1  # parts of the sum, then the sums
        self.bytes = times * moved.nbytes * (self.ranks - 1) // self.ranks

    # What both parts take alone.

    def multiply(self, a, out):
        if self.scales is None:
            return torch.mm(a, self.w, out=out)
        return torch.ops.aten._scaled_mm.out(a, self.w, *self.scales, None, None, out.dtype, False, out=out)

    def gemm(self):
        return self.multiply(self.whole, self.made)

    def torchs_comm(self):
        group = self.place.fast
        if self.kind == "gather":
            dist.all_gather_into_tensor(_plain(self.whole), _plain(self.x), group=group)
        elif self.kind == "exchange":
            dist.all_to_all_single(_plain(self.whole), _plain(self.x), group=group)
        elif self.kind == "reduce":
            dist.all_reduce(self.made, group=group)
        else:
            dist.reduce_scatter_tensor(self.part, self.made, group=group)

    def our_comm(self):
        stream, comm = self.place.stream(), self.place.comm
        if self.kind == "gather":
            work = comm.allgather(_plain(self.x), _plain(self.whole), stream=stream)
        elif self.kind == "exchange":
            work = comm.alltoall(_plain(self.x), _plain(self.whole), stream=stream)
        elif self.kind == "reduce":
            work = comm.allreduce(self.made, stream=stream)
        else:
            work = comm.reducescatter(self.made, self.part, stream=stream)
        if stream is None:
            work.wait()
        else:
            comm._unfinished.clear()  # the buffers live as long as the layer

    # Ways to do both.

    def one_after_the_other(self, comm):
        if self.whole is not self.x:
            comm()
            return self.gemm()
        self.gemm()
        comm()
        return self.part if self.kind == "scatter" else self.made

    def by_op(self, backend, chunks, gemm="torch", budget=0, return_A=False):
        """The product; with `return_A` x of all ranks, too."""
        how = {"backend": backend, "chunks": chunks, "budget": budget, "gemm": gemm}
        x, w, group = self.x, self.w, self.place.slow
        if self.scales is not None:
            a, b, out = *self.scales, self.made.dtype
            if self.kind == "gather":
                lists = [w], a, [b], 0, group, [None], [None], [out], [False]
                return ops.all_gather_scaled_matmul(x, *lists, **how)[1][0]
            return ops.scaled_matmul_reduce_scatter(x, w, a, b, "sum", 0, 0, group, out_dtype=out, **how)
        if self.kind == "gather":
            whole, (made,) = ops.all_gather_matmul(x, [w], 0, group, return_A=return_A, **how)
            return (whole, made) if return_A else made
        if self.kind == "exchange":
            whole, (made,) = ops.all_to_all_matmul(x, [w], group, return_A=return_A, **how)
            return (whole, made) if return_A else made
        if self.kind == "reduce":
            return ops.matmul_all_reduce(x, w, "sum", group, **how)
        return ops.matmul_reduce_scatter(x, w, "sum", 0, group, **how)

    def serial_like(self, name):
        """What backend serial gives by the GEMMs of the op that has run last; None: that was none of ours."""
        if not name.startswith("op "):
            return None
        gemm, ran = name.removesuffix(WHOLE).split()[-1], self._explained()
        return self.by_op("serial", ran["chunks"], gemm, ran["budget"]) if ran["backend"] in OURS else None

    def _explained(self):
        return ops.explain(self.place.slow, self.place.device)[-1]

    def by_torchs_op(self, return_A=False):
        own, name = torch.ops.symm_mem, self.place.fast.group_name
        if self.scales is not None:
            a, b, out = *self.scales, self.made.dtype
            if self.kind == "gather":
                lists = [self.w], a, [b], 0, name, [None], [None], [out], [False]
                return own.fused_all_gather_scaled_matmul(self.x, *lists)[1][0]
            shape = list(self.made.shape)
            return own.fused_scaled_matmul_reduce_scatter(self.x, self.w, a, b, "sum", 0, 0, name, shape, out_dtype=out)
        if self.kind == "gather":
            whole, (made,) = own.fused_all_gather_matmul(self.x, [self.w], 0, name, return_A=return_A)
            return (whole, made) if return_A else made
        return own.fused_matmul_reduce_scatter(self.x, self.w, "sum", 0, name)

    def by_torchs_native_op(self):
        """The same where torch may take its kernel whose GEMM polls flags of its input."""
        os.environ[NATIVE] = "1"
        try:
            return self.by_torchs_op()
        finally:
            del os.environ[NATIVE]

    def by_polling(self, program, chunks):
        """What calls it: made by the first call."""
        made = []

        def call():
            from overlap_polling import PolledProduct

            if not made:
                made.append(PolledProduct(self, program, chunks))
            return made[0]()

        return call

    def by_hand(self, pieces):
        """Pieces of rows on two streams: of each the collective beside the product of another."""
        main, side = torch.cuda.current_stream(), self.place.side
        own = self.x.shape[0] // pieces if self.kind == "gather" else self.part.shape[0] // pieces
        side.wait_stream(main)
        if self.kind == "reduce":
            for x, made in zip(self.x.chunk(pieces), self.made.chunk(pieces)):
                self.multiply(x, made)
                side.wait_stream(main)
                with torch.cuda.stream(side):
                    dist.all_reduce(made, group=self.place.fast)
            main.wait_stream(side)
            return self.made
        if self.kind == "gather":
            result = self.made.view(pieces, self.ranks * own, -1)
            gathered = self.whole.view(pieces, self.ranks * own, -1)
            for piece in range(pieces):
                with torch.cuda.stream(side):
                    mine = self.x[piece * own:(piece + 1) * own]
                    dist.all_gather_into_tensor(_plain(gathered[piece]), _plain(mine), group=self.place.fast)
                main.wait_stream(side)
                self.multiply(gathered[piece], result[piece])
            return result  # rows in another order: each piece has all ranks'
        x = self.x.view(self.ranks, pieces, own, -1)
        made = self.made.view(pieces, self.ranks, own, -1)
        for piece in range(pieces):
            for rank in range(self.ranks):
                self.multiply(x[rank, piece], made[piece, rank])
            side.wait_stream(main)
            with torch.cuda.stream(side):
                part = self.part[piece * own:(piece + 1) * own]
                dist.reduce_scatter_tensor(part, made[piece].flatten(0, 1), group=self.place.fast)
        main.wait_stream(side)
        return self.part

    def in_order(self, name, result):
        """A result with its rows as the other ways have them."""
        if name.startswith("by hand") and self.kind == "gather":
            pieces = result.shape[0]
            return result.view(pieces, self.ranks, -1, result.shape[-1]).transpose(0, 1).reshape(self.made.shape)
        return result


def _plain(tensor):
    """As bytes, if it is of 8 bits: not all communicators have such floats."""
    return tensor.view(torch.uint8) if tensor.itemsize == 1 else tensor


def modes_of(layer, place, gemms):
    """Names and calls; the first three are what the parts take alone."""
    torchs = "NCCL" if place.device.type == "cuda" else "gloo"
    found = {
        "product": layer.gemm,
        f"{torchs} alone": layer.torchs_comm,
        "our collective alone": layer.our_comm,
        f"{torchs}, torch.mm": lambda: layer.one_after_the_other(layer.torchs_comm),
        "our collective, torch.mm": lambda: layer.one_after_the_other(layer.our_comm),
    }
    for gemm in gemms:
        found[f"op serial 1 {gemm}"] = lambda gemm=gemm: layer.by_op("serial", 1, gemm)
        for backend, all_chunks in CHUNKS.items():
            for chunks in all_chunks:
                found[f"op {backend} {chunks} {gemm}"] = functools.partial(layer.by_op, backend, chunks, gemm)
        found[f"op auto {gemm}"] = lambda gemm=gemm: layer.by_op("auto", 0, gemm)
        for backend, chunks in (("serial", 1), ("auto", 0)) if gives_whole(layer) else ():
            name = f"op {backend} {chunks} {gemm}" if chunks else f"op {backend} {gemm}"
            found[name + WHOLE] = functools.partial(layer.by_op, backend, chunks, gemm, return_A=True)
    if _has_triton(place.device) and layer.scales is None:
        for program in POLLED.get(layer.kind, ()):
            for chunks in POLLED_CHUNKS:
                found[f"triton {program} {chunks}"] = layer.by_polling(program, chunks)
    if place.device.type == "cuda":
        found["op nccl 1 torch"] = lambda: layer.by_op("nccl", 1)
        if any(one["name"] == "cublasmp" and one["available"] for one in ops.backends(place.device)):
            found["op cublasmp 0 own"] = lambda: layer.by_op("cublasmp", 0, "own")
        if layer.kind in ("gather", "scatter"):
            found["torch's fused op"] = layer.by_torchs_op
            if gives_whole(layer):
                found["torch's fused op" + WHOLE] = functools.partial(layer.by_torchs_op, return_A=True)
        if has_native_op(layer):
            found["torch's native op"] = layer.by_torchs_native_op
        for pieces in HAND if layer.kind != "exchange" else ():
            found[f"by hand {pieces}"] = lambda pieces=pieces: layer.by_hand(pieces)
    return found


def gives_whole(layer):
    """Whether its ops give what was gathered or exchanged where they are asked to; those of 8 bits do always."""
    return layer.whole is not layer.x and layer.scales is None


def has_native_op(layer):
    """Whether torch's op takes its kernel that polls flags, where the environment has NATIVE."""
    return layer.kind == "gather" and layer.scales is None and 2048 < len(layer.whole) <= 4096


def _has_triton(device):
    """Whether it runs kernels there: on processors its interpreter does, where that is asked for."""
    there = device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
    return there and importlib.util.find_spec("triton") is not None


ALONE = 3  # modes that are one part only


def check(layer, name, call, wanted):
    """AssertionError: a result is off, an op of ours has other bits than our serial way by the same GEMMs, or what it
    gathered is not what torch's communicator gathers."""
    made = call()
    whole, made = made if name.endswith(WHOLE) else (None, made)
    layer.place.synchronize()  # what follows may load kernels or allocate, for which CUDA may wait with a lock
    serial = layer.serial_like(name)
    found = layer.in_order(name, made).float()
    off, most = float((found - wanted).abs().max()), float(wanted.abs().max())
    step = torch.finfo(made.dtype).eps
    assert off <= 4 * step * most, f"off by {off}, and the greatest value is {most}"
    assert serial is None or torch.equal(made, serial), "other bits than by backend serial"
    if whole is not None:
        layer.torchs_comm()
        layer.place.synchronize()
        assert torch.equal(whole, layer.whole), "another A than torch's communicator gathers"


def repeat(call, calls):
    """Results are not kept: they are large."""
    for _ in range(calls):
        call()


class RankSetup:
    """A rank, its groups and its clock."""

    def __init__(self, rank, ranks, device, dtype, meeting, patience):
        """`patience`: seconds after which a plan reports what it waits for."""
        self.rank, self.ranks, self.dtype = rank, ranks, dtype
        self.device = torch.device(device, rank) if device == "cuda" else torch.device(device)
        if device == "cuda":
            torch.cuda.set_device(rank)
            self.side = torch.cuda.Stream(priority=-1)
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
        self.slow = dist.group.WORLD
        self.fast = dist.new_group(backend="nccl") if device == "cuda" else self.slow
        if device == "cuda":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.distributed._symmetric_memory.enable_symm_mem_for_group(self.fast.group_name)
        ids = [mscclc.unique_id() if rank == 0 else None]
        dist.broadcast_object_list(ids)
        self.comm = mscclc.Communicator(ranks, ids[0], rank, device=rank if device == "cuda" else None, timeout=patience)

    def stream(self):
        return torch.cuda.current_stream().cuda_stream if self.device.type == "cuda" else None

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def all_well(self, error):
        """The errors of all ranks that have one, for all; None: all is well."""
        found = [None] * self.ranks
        dist.all_gather_object(found, error, group=self.slow)
        return "; ".join(f"rank {rank}: {one}" for rank, one in enumerate(found) if one) or None

    def slowest(self, number):
        found = torch.tensor([number], dtype=torch.float64)
        dist.all_reduce(found, dist.ReduceOp.MAX, group=self.slow)
        return found.item()

    def graph_of(self, call, calls):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="relaxed"):
            repeat(call, calls)
        return graph

    def close(self):
        self.synchronize()
        dist.barrier(self.slow)
        with contextlib.suppress(Exception):  # what failed before has been reported
            ops.close()
            self.comm.close()
        dist.destroy_process_group()
