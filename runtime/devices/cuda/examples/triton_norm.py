"""A Triton kernel that lets the next call begin early: RMS norm before a collective.

Needs PyTorch, Triton 3.4 or later and GPUs of compute capability 9.0 or higher; run by hand:

    python3 runtime/devices/cuda/examples/triton_norm.py

checks the kernel against PyTorch. With several GPUs

    LD_PRELOAD=/opt/mscclc/lib/mscclc/libnccl.so.2 MSCCLC_EARLY_LAUNCH=2 \\
        torchrun --nproc-per-node 2 runtime/devices/cuda/examples/triton_norm.py

also checks an all-reduce after it, and says what norm and all-reduce take in a CUDA graph, with the
line and without it. docs/design/gpu.md says what holds for kernels before calls.
"""

import os
import statistics

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from triton.language.extra import cuda

PAIRS, REPLAYS, REPEATS = 50, 8, 9  # in a graph; of it; of which the median is taken
COLUMNS = 4096


@triton.jit
def rms_norm(x, weight, out, columns, eps, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    # Only where it is launched with launch_pdl=True does this wait: for the previous launch, whose
    # results are there from now on.
    cuda.gdc_wait()
    # The one line: the next call gets ready while the rest of this kernel runs.
    if EARLY:
        cuda.gdc_launch_dependents()
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values) / columns + eps)
    weights = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * columns + at, values * scale * weights, mask=inside)


def norm(x, weight, out, early=True, eps=1e-6):
    """RMS norm of the rows of x into out, which a collective on the same stream may read next."""
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    rms_norm[(rows,)](x, weight, out, columns, eps, BLOCK=block, EARLY=early, launch_pdl=True)
    return out


def random_case(rows, columns):
    """Rows, weights, and what PyTorch makes of them."""
    x = torch.randn(rows, columns, device="cuda")
    weight = torch.randn(columns, device="cuda")
    return x, weight, torch.nn.functional.rms_norm(x, (columns,), weight, 1e-6)


def captured(body):
    """A graph of PAIRS times body()."""
    for _ in range(3):
        body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(PAIRS):
            body()
    return graph


def microseconds(graph):
    """Of one body in a graph, on the slowest rank."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(REPEATS):
        dist.barrier()
        begin.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / (REPLAYS * PAIRS))
    slowest = torch.tensor(statistics.median(times), device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def pairs_of(rows):
    """Checks norm and all-reduce of some rows, and prints what they take."""
    x, weight, _ = random_case(rows, COLUMNS)
    out = torch.empty_like(x)
    took = {}
    for early in (True, False):

        def pair(early=early):
            norm(x, weight, out, early)
            dist.all_reduce(out)

        graph = captured(pair)
        took[early] = microseconds(graph)
        wanted = torch.nn.functional.rms_norm(x, (COLUMNS,), weight, 1e-6)
        dist.all_reduce(wanted)
        torch.testing.assert_close(out, wanted)
    alone = microseconds(captured(lambda: norm(x, weight, out)))
    if dist.get_rank() == 0:
        print(
            f"{rows * COLUMNS * 4} bytes: norm and all-reduce {took[True]:.2f} us with the line, "
            f"{took[False]:.2f} without; the norm alone {alone:.2f}",
            flush=True,
        )


def main():
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 9:
        raise SystemExit("triton_norm.py: needs a GPU of compute capability 9.0 or higher")
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    torch.manual_seed(1)
    x, weight, wanted = random_case(128, 3000)
    torch.testing.assert_close(norm(x, weight, torch.empty_like(x)), wanted)
    if "RANK" in os.environ:
        dist.init_process_group("nccl")
        for rows in (1, 4, 16, 64):
            pairs_of(rows)
        dist.destroy_process_group()
    print("right")


if __name__ == "__main__":
    main()
