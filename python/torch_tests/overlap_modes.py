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


class Layer:
    """A product of a layer, with buffers: kind "gather" (x of all ranks times w) or "scatter" (parts of x times w)."""

    def __init__(self, kind, rows, columns, width, place):
        """x of all ranks has `rows` x `columns`, w `columns` x `width`, at each rank."""
        self.kind, self.place, self.ranks, self.rank = kind, place, place.ranks, place.rank
        own = rows // self.ranks if kind == "gather" else rows
        generator = torch.Generator(place.device).manual_seed(1 + place.rank)
        how = {"dtype": place.dtype, "device": place.device, "generator": generator}
        make = lambda *shape: torch.randn(*shape, **how)  # noqa: E731
        self.x = make(own, columns)
        self.w = (make(width, columns) * columns**-0.5).t()  # as nn.Linear has it
        self.whole = self.x.new_empty(rows, columns) if kind == "gather" else self.x
        self.made = self.x.new_empty(rows, width)
        self.part = self.x.new_empty(rows // self.ranks, width)
        self.flops = 2 * rows * columns * width
        moved = self.whole if kind == "gather" else self.made
        self.bytes = moved.numel() * moved.element_size() * (self.ranks - 1) // self.ranks

    # What both parts take alone.

    def gemm(self):
        return torch.mm(self.whole, self.w, out=self.made)

    def torchs_comm(self):
        if self.kind == "gather":
            dist.all_gather_into_tensor(self.whole, self.x, group=self.place.fast)
        else:
            dist.reduce_scatter_tensor(self.part, self.made, group=self.place.fast)

    def our_comm(self):
        stream = self.place.stream()
        if self.kind == "gather":
            work = self.place.comm.allgather(self.x, self.whole, stream=stream)
        else:
            work = self.place.comm.reducescatter(self.made, self.part, stream=stream)
        if stream is None:
            work.wait()
        else:
            self.place.comm._unfinished.clear()  # the buffers live as long as the layer

    # Ways to do both.

    def one_after_the_other(self, comm):
        if self.kind == "gather":
            comm()
            return self.gemm()
        self.gemm()
        comm()
        return self.part

    def by_op(self, backend, chunks, gemm="torch"):
        how = {"backend": backend, "chunks": chunks, "gemm": gemm}
        if self.kind == "gather":
            return ops.all_gather_matmul(self.x, [self.w], 0, self.place.slow, return_A=False, **how)[1][0]
        return ops.matmul_reduce_scatter(self.x, self.w, "sum", 0, self.place.slow, **how)

    def by_torchs_op(self):
        own, name = torch.ops.symm_mem, self.place.fast.group_name
        if self.kind == "gather":
            return own.fused_all_gather_matmul(self.x, [self.w], 0, name, return_A=False)[1][0]
        return own.fused_matmul_reduce_scatter(self.x, self.w, "sum", 0, name)

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
        if self.kind == "gather":
            result = self.made.view(pieces, self.ranks * own, -1)
            gathered = self.whole.view(pieces, self.ranks * own, -1)
            for piece in range(pieces):
                with torch.cuda.stream(side):
                    mine = self.x[piece * own:(piece + 1) * own]
                    dist.all_gather_into_tensor(gathered[piece], mine, group=self.place.fast)
                main.wait_stream(side)
                torch.mm(gathered[piece], self.w, out=result[piece])
            return result  # rows in another order: each piece has all ranks'
        x = self.x.view(self.ranks, pieces, own, -1)
        made = self.made.view(pieces, self.ranks, own, -1)
        for piece in range(pieces):
            for rank in range(self.ranks):
                torch.mm(x[rank, piece], self.w, out=made[piece, rank])
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
    if _has_triton(place.device):
        for program in POLLED[layer.kind]:
            for chunks in POLLED_CHUNKS:
                found[f"triton {program} {chunks}"] = layer.by_polling(program, chunks)
    if place.device.type == "cuda":
        found["op nccl 1 torch"] = lambda: layer.by_op("nccl", 1)
        if any(one["name"] == "cublasmp" and one["available"] for one in ops.backends(place.device)):
            found["op cublasmp 0 own"] = lambda: layer.by_op("cublasmp", 0, "own")
        found["torch's fused op"] = layer.by_torchs_op
        for pieces in HAND:
            found[f"by hand {pieces}"] = lambda pieces=pieces: layer.by_hand(pieces)
    return found


def _has_triton(device):
    """Whether it runs kernels there: on processors its interpreter does, where that is asked for."""
    there = device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
    return there and importlib.util.find_spec("triton") is not None


ALONE = 3  # modes that are one part only


def check(layer, name, call, wanted):
    """AssertionError: a result is off, or has other bits than our serial way with as many chunks."""
    made, serial = call(), None
    layer.place.synchronize()  # what follows may load kernels or allocate, for which CUDA may wait with a lock
    if name.startswith("op mscclc"):
        chunks, gemm = name.split()[2:]
        serial = layer.by_op("serial", int(chunks), gemm)
    found = layer.in_order(name, made).float()
    off, most = float((found - wanted).abs().max()), float(wanted.abs().max())
    step = torch.finfo(layer.place.dtype).eps
    assert off <= 4 * step * most, f"off by {off}, and the greatest value is {most}"
    assert serial is None or torch.equal(made, serial), "other bits than by backend serial"


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
