"""What a call of mscclc.ops costs the host: µs of the C call, and of Python around it, for shapes that take no time.

    python3 python/torch_tests/overlap_cost.py [--ranks 1] [--device cpu] [--backend serial] [--beside nccl]
        [--calls 20] [--rounds 200]

C is mscclc_overlap_run() with arguments made before; on the host device also the wait for its end, on GPUs until it
is queued. `own` and `torch` are the same object by its op, with products by the library and by torch, and what that
adds. `Python` is the op where the C calls do nothing: on the host device a program's main thread waits by another one,
for Ctrl-C, and what waking it takes depends on what else runs. `--beside` adds what the same takes in sequence by
torch.distributed over that backend, and torch's products; ratio: of the faster of `own` and `torch` to it. Cases with gradients are without the backward pass. The
least of the rounds counts, as other work only adds to it. With several ranks each waits for the others, which is in
all columns but the last; on GPUs, which ranks may share, only where so much is queued that the driver waits.
"""

import argparse
import contextlib
import ctypes
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from mscclc import _overlap, ops
from mscclc._library import check, library
from mscclc.torch.overlap import objects

ROWS, DEPTH, COLUMNS = 8, 16, 16  # of each rank


class Case:
    """An op on tensors of this rank."""

    def __init__(self, given, group, kind, weights=1, bias=False, wanted=False):
        self.scaled = "scaled" in kind
        type = torch.float8_e4m3fn if self.scaled else torch.bfloat16
        make = lambda *shape, type=type: torch.ones(*shape, device=given.device).to(type)  # noqa: E731
        self.name = f"{kind}, {weights} weight{'s' * (weights > 1)}{', bias' * bias}{', gradients' * wanted}"
        self.kind, self.group, self.backend, self.bias = kind, group, given.backend, bias
        rows = ROWS if kind.startswith("all_gather") else ROWS * given.ranks
        self.A = make(rows, DEPTH).requires_grad_(wanted)
        self.Bs = [make(COLUMNS, DEPTH).t().requires_grad_(wanted) for _ in range(weights)]
        self.biases = [make(COLUMNS, type=torch.bfloat16) for _ in range(weights if bias else 0)]
        self.scales = [make((), type=torch.float32) for _ in range(1 + weights if self.scaled else 0)]

    def call(self, gemm):
        """Once by the op."""
        how = {"backend": self.backend, "chunks": 1, "gemm": gemm}
        if self.kind in ("all_gather_matmul", "all_to_all_matmul"):
            dim = [0] if self.kind == "all_gather_matmul" else []
            call = getattr(ops, self.kind)
            return call(self.A, self.Bs, *dim, self.group, biases=self.biases, return_A=False, **how)
        bias = self.biases[0] if self.biases else None
        if self.scaled:
            return self.call_scaled(bias, how)
        if self.kind == "matmul_reduce_scatter":
            return ops.matmul_reduce_scatter(self.A, self.Bs[0], "sum", 0, self.group, bias=bias, **how)
        return ops.matmul_all_reduce(self.A, self.Bs[0], "sum", self.group, bias=bias, **how)

    def call_scaled(self, bias, how):
        out, no = torch.bfloat16, [None] * len(self.Bs)
        if self.kind == "scaled_matmul_reduce_scatter":
            where = "sum", 0, 0, self.group
            return ops.scaled_matmul_reduce_scatter(
                self.A, self.Bs[0], *self.scales, *where, None, bias, None, out, **how
            )
        A_scale, *B_scales = self.scales
        return ops.all_gather_scaled_matmul(
            self.A, self.Bs, A_scale, B_scales, 0, self.group, self.biases or no, no, [out] * len(no),
            [False] * len(no), **how,
        )  # fmt: skip

    def in_sequence(self, group):
        """The same by torch.distributed and torch.mm; None where this program does not say how."""
        A, (B, *more), ranks = self.A, self.Bs, group.size()
        if more or self.biases or self.scaled or A.requires_grad:
            return None
        if self.kind == "all_gather_matmul":
            def call():
                gathered = A.new_empty(A.shape[0] * ranks, DEPTH)
                dist.all_gather_into_tensor(gathered, A, group=group)
                return torch.mm(gathered, B)
        elif self.kind == "all_to_all_matmul":
            def call():
                received = torch.empty_like(A)
                dist.all_to_all_single(received, A, group=group)
                return torch.mm(received, B)
        elif self.kind == "matmul_reduce_scatter":
            def call():
                scattered = A.new_empty(A.shape[0] // ranks, COLUMNS)
                dist.reduce_scatter_tensor(scattered, torch.mm(A, B), group=group)
                return scattered
        else:
            def call():
                product = torch.mm(A, B)
                dist.all_reduce(product, group=group)
                return product
        return call

    def of_C(self):
        """The C calls that call("own") makes, ready to be made again."""
        self.call("own")
        of = objects.session(self.group.group_name, self.A.device)
        made, comm, rows = of.in_order()[-1][1].object, of.comm, self.A.shape[0] * of.comm.size
        self.made, self.comm = made, comm
        outs = [self.A.new_empty(rows, COLUMNS, dtype=torch.bfloat16) for _ in self.Bs]
        workspace = torch.empty(made.workspace_bytes, dtype=torch.uint8, device=self.A.device)
        addresses = lambda all: (ctypes.c_void_p * len(all))(*[one.data_ptr() for one in all]) or None  # noqa: E731
        scales = (self.scales[0].data_ptr(), addresses(self.scales[1:])) if self.scaled else (None, None)
        arguments = _overlap.OverlapCall(
            ctypes.sizeof(_overlap.OverlapCall), self.A.data_ptr(), addresses(self.Bs), addresses(outs),
            addresses(self.biases), *scales, None, workspace.data_ptr(), made.workspace_bytes,
        )  # fmt: skip
        cuda = self.A.device.type == "cuda"
        stream = torch.cuda.current_stream().cuda_stream if cuda else comm._stream
        run, wait, given = library().mscclc_overlap_run, library().mscclc_stream_synchronize, ctypes.byref(arguments)

        def call():
            result = run(made._handle, given, stream)
            if not cuda:
                result = result or wait(comm._handle, stream)
            if result:
                check(result)

        call.keeps = outs, workspace
        return call


    @contextlib.contextmanager
    def without_C(self):
        """What of_C() calls does nothing."""
        found = self.made._run, self.comm.synchronize
        self.made._run = self.comm.synchronize = lambda *_: None
        try:
            yield
        finally:
            self.made._run, self.comm.synchronize = found


def least(given, call):
    """µs a call, of the best round."""
    found = []
    for _ in range(given.rounds + 1):
        if given.device.startswith("cuda"):
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(given.calls):
            call()
        found.append((time.perf_counter() - begin) * 1e6 / given.calls)
    return min(found[1:])


def rank_main(rank, given, folder):
    torch.set_num_threads(1)
    if given.device == "cuda":
        gpu = rank % torch.cuda.device_count()
        torch.cuda.set_device(gpu)
        given.device = f"cuda:{gpu}"
        if given.ranks > torch.cuda.device_count():
            os.environ.update(NCCL_HOSTID=f"rank {rank}", NCCL_SOCKET_IFNAME="lo")  # it refuses ranks that share a GPU
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=given.ranks)
    others = dist.new_group(backend=given.beside) if given.beside else None
    cases = [
        ("all_gather_matmul",), ("all_gather_matmul", 3), ("all_gather_matmul", 3, True), ("all_to_all_matmul",),
        ("matmul_reduce_scatter",), ("matmul_reduce_scatter", 1, True), ("matmul_all_reduce",),
        ("all_gather_matmul", 1, False, True), ("matmul_reduce_scatter", 1, False, True),
        ("all_gather_scaled_matmul",), ("all_gather_scaled_matmul", 3, True), ("scaled_matmul_reduce_scatter",),
    ]  # fmt: skip
    names = ("C", "own", "adds", "torch", "adds", "Python", *([given.beside, "ratio"] if given.beside else []))
    if rank == 0:
        print(f"{'µs a call':<44}" + "".join(f"{name:>8}" for name in names), flush=True)
    for one in cases:
        case = Case(given, dist.group.WORLD, *one)
        of_C = least(given, case.of_C())
        own, torchs = (least(given, lambda: case.call(gemm)) for gemm in ("own", "torch"))  # noqa: B023
        with case.without_C():
            python = least(given, lambda: case.call("own"))  # noqa: B023
        found = [of_C, own, own - of_C, torchs, torchs - of_C, python]
        if others is not None and (in_sequence := case.in_sequence(others)) is not None:
            found.append(least(given, in_sequence))
            found.append(min(own, torchs) / found[-1])
        if rank == 0:
            print(f"{case.name:<44}" + "".join(f"{us:8.2f}" for us in found), flush=True)
    ops.close()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cpu")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--backend", default="serial")
    parser.add_argument("--beside", help="a backend of torch.distributed, as nccl")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.ranks == 1:
            rank_main(0, given, folder)
        else:
            mp.spawn(rank_main, (given, folder), nprocs=given.ranks)


if __name__ == "__main__":
    main()
