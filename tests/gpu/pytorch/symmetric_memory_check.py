"""Symmetric memory on GPUs: our backend of torch's interface, and our class over torch's backends.

    python3 tests/gpu/pytorch/symmetric_memory_check.py [--ranks N] [--seconds N] [NAME…]

A process has one backend, so each runs in processes of its own (default: as many as GPUs), one
after another: MSCCLC in torch's interface, then the class with native, cuda, nccl and nvshmem, or those
that are named. What needs a library that is not here is reported as skipped, with the reason. The last
line says how many checks passed, failed and were skipped. Multicast is never used. Ranks may share a GPU
(under MPS) with MSCCLC and native.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import traceback

COUNT = 256 * 512
BACKENDS = ("MSCCLC", "native", "cuda", "nccl", "nvshmem")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--ranks", type=int, default=0)
    options.add_argument("--seconds", type=int, default=90, help="what one backend may take")
    options.add_argument("--rank", type=int)
    options.add_argument("--backend")
    options.add_argument("--folder")
    options.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BACKENDS)}")
    given = options.parse_args()
    if given.backend:
        return run_rank(given)
    import torch

    ranks = given.ranks or torch.cuda.device_count()
    totals = [0, 0, 0]
    for backend in given.names or BACKENDS:
        for i, number in enumerate(run_backend(backend, ranks, given.seconds)):
            totals[i] += number
    print("{} passed, {} failed, {} skipped".format(*totals))
    return totals[1] > 0


def run_backend(backend, ranks, seconds):
    """How many checks passed, failed and were skipped, on rank 0; a rank that fails counts, too."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.abspath(__file__), "--backend", backend,
                   "--ranks", str(ranks), "--folder", folder]  # fmt: skip
        environment = {**os.environ, "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
                       "NCCL_NVLS_ENABLE": "0", "NVSHMEM_DISABLE_NVLS": "1"}  # fmt: skip
        processes = [
            subprocess.Popen([*command, "--rank", str(r)], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, env=environment)
            for r in range(ranks)
        ]  # fmt: skip
        outputs = []
        for process in processes:
            left = max(1, begin + seconds - time.monotonic())
            try:
                outputs.append(process.communicate(timeout=left)[0])
            except subprocess.TimeoutExpired:
                process.kill()
                outputs.append(process.communicate()[0] + f"\nhas not ended in {seconds} s")
    passed = skipped = failed = 0
    for rank, output in enumerate(outputs):
        lines = output.splitlines()
        fine = any(line == "the end" for line in lines)
        failed += sum(line.startswith("FAILED") for line in lines) + (not fine)
        if rank == 0:
            passed = sum(line.startswith("passed") for line in lines)
            skipped = sum(line.startswith("skipped") for line in lines)
        wanted = lines if not fine or any(x.startswith("FAILED") for x in lines) else [
            x for x in lines if x.startswith(("passed", "skipped", "note"))]  # fmt: skip
        if rank == 0 or wanted is lines:
            print(f"-- {backend}, rank {rank}")
            print("\n".join("   " + line[:300] for line in wanted[-40:]))
    print(f"-- {backend}: {time.monotonic() - begin:.0f} s", flush=True)
    return passed, failed, skipped


class Skipped(Exception):
    """What a check needs is not here."""


def run_rank(given):
    import torch
    import torch.distributed as dist

    gpus = torch.cuda.device_count()
    if gpus < given.ranks:  # NCCL takes ranks that share a GPU for ranks of several machines
        os.environ.update(NCCL_HOSTID=f"rank {given.rank}", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
    torch.cuda.set_device(given.rank % gpus)
    # Read when the first communicator is made; _loads() reads what is written.
    os.environ.update(MSCCLC_DEBUG="INFO", MSCCLC_DEBUG_SUBSYS="LOAD",
                      MSCCLC_DEBUG_FILE=os.path.join(given.folder, f"log{given.rank}"))  # fmt: skip
    dist.init_process_group("cpu:gloo,cuda:nccl", init_method=f"file://{given.folder}/store",
                            rank=given.rank, world_size=given.ranks,
                            device_id=torch.device("cuda", given.rank % gpus))  # fmt: skip
    checks = OF_TORCH if given.backend == "MSCCLC" else OF_CLASS
    for check in checks:
        try:
            check(given.rank, given.ranks, given.backend)
            torch.cuda.synchronize()
            print(f"passed {check.__name__}", flush=True)
        except Skipped as why:
            print(f"skipped {check.__name__}: {why}", flush=True)
            break
        except Exception:  # every check is tried
            print(f"FAILED {check.__name__}\n{traceback.format_exc()}", flush=True)
        dist.all_reduce(torch.zeros(1))  # by gloo: all ranks are done with it
    print("the end", flush=True)
    os._exit(0)  # what has failed may hang in teardown


# ---- torch's interface, backend MSCCLC ----


def _rendezvous(tensor):
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm

    handle = symm.rendezvous(tensor, dist.group.WORLD)
    assert handle is not None, "the memory is not symmetric"
    return handle


def _empty(*shape, **more):
    import torch
    import torch.distributed._symmetric_memory as symm

    return symm.empty(*shape, device=torch.device("cuda", torch.cuda.current_device()), **more)


def _equal(found, wanted, what=""):
    import torch

    wanted = torch.as_tensor(wanted, device=found.device, dtype=found.dtype).expand(found.shape)
    assert torch.equal(found, wanted), f"{what}: {found.flatten()[:8].tolist()} is wrong"


def every_rank_reads_every_peer(rank, ranks, backend):
    import torch
    import torch.distributed._symmetric_memory as symm

    import mscclc.torch.symmetric  # noqa: F401

    symm.set_backend("MSCCLC")
    tensor = _empty(256, 512, dtype=torch.float32)
    tensor.fill_(rank + 200)
    handle = _rendezvous(tensor)
    assert symm.get_backend(tensor.device) == "MSCCLC" and handle.multicast_ptr == 0
    handle.barrier()
    for peer in range(ranks):
        _equal(handle.get_buffer(peer, (256, 512), torch.float32), peer + 200.0, f"rank {peer}")
    handle.barrier()


def who_sees_a_write(rank, ranks, backend):
    import torch

    tensor = _empty(ranks, dtype=torch.int64).zero_()
    handle = _rendezvous(tensor)
    view = [handle.get_buffer(p, (ranks,), torch.int64) for p in range(ranks)]

    def seen():
        handle.barrier()
        found = torch.stack(view).cpu()
        handle.barrier()
        return found

    expected = torch.zeros(ranks, ranks, dtype=torch.int64)
    assert torch.equal(seen(), expected)
    tensor[0] = 10 + rank
    expected[:, 0] = 10 + torch.arange(ranks)
    assert torch.equal(seen(), expected)
    view[(rank + 1) % ranks][rank] = 100 + rank
    for p in range(ranks):
        expected[(p + 1) % ranks][p] = 100 + p
    assert torch.equal(seen(), expected)


def signals(rank, ranks, backend):
    """Ordered by the stream, many times, without a wait of the host."""
    import torch

    tensor = _empty(1 << 20, dtype=torch.float32).zero_()
    handle = _rendezvous(tensor)
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    there = handle.get_buffer(right, (1 << 20,), torch.float32)
    wrong = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for round in range(100):
        there.fill_(1000 * rank + round)
        handle.put_signal(right, 2)
        handle.wait_signal(left, 2)
        wrong += (tensor != 1000 * left + round).sum()
        handle.barrier(1)
    assert int(wrong) == 0, f"{int(wrong)} words are wrong"
    try:
        handle.barrier(0, 100)
    except RuntimeError as error:
        assert "host only" in str(error), error
    else:
        raise AssertionError("a timeout was taken")


def barriers_in_a_graph(rank, ranks, backend):
    import torch

    tensor = _empty(4096, dtype=torch.float32).zero_()
    handle = _rendezvous(tensor)
    there = handle.get_buffer((rank + 1) % ranks, (4096,), torch.float32)
    value = torch.zeros(4096, device=tensor.device)
    found = torch.zeros(4096, device=tensor.device)

    def step():
        there.copy_(value)
        handle.barrier()
        found.copy_(tensor)
        handle.barrier()

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for round in range(20):
        value.fill_(100 * rank + round)
        graph.replay()
        _equal(found, 100.0 * ((rank - 1) % ranks) + round, f"replay {round}")


def kernels_of_torch(rank, ranks, backend):
    """torch's own kernels on our memory: addresses and signal pads as it expects them."""
    import torch
    import torch.distributed as dist

    tensor = _empty(8192, dtype=torch.float32).fill_(rank + 1)
    handle = _rendezvous(tensor)
    handle.barrier()
    name = dist.group.WORLD.group_name
    for op in ("one_shot_all_reduce", "two_shot_all_reduce_"):
        tensor.fill_(rank + 1)
        handle.barrier()
        _equal(getattr(torch.ops.symm_mem, op)(tensor, "sum", name), ranks * (ranks + 1) / 2, op)
        handle.barrier()


def memory_pool(rank, ranks, backend):
    """Tensors of a MemPool are symmetric, views address the right bytes."""
    import torch
    import torch.distributed._symmetric_memory as symm

    pool = symm.get_mem_pool(torch.device("cuda", torch.cuda.current_device()))
    with torch.cuda.use_mem_pool(pool):
        tensors = [torch.full((n,), float(rank), device="cuda") for n in (100, 1 << 20, 3 << 20)]
    for tensor in tensors:
        handle = _rendezvous(tensor)
        assert handle.buffer_ptrs[rank] + handle.offset == tensor.data_ptr()
        part = tensor[16:32]
        begin = handle.offset // 4 + part.storage_offset()
        handle.get_buffer((rank + 1) % ranks, (16,), torch.float32, begin).fill_(50 + rank)
        handle.barrier()
        _equal(part, 50.0 + (rank - 1) % ranks)
        _equal(tensor[:16], float(rank))
        _equal(tensor[32:], float(rank))
        handle.barrier()


def taken_without_a_copy(rank, ranks, backend):
    import torch
    import torch.distributed as dist

    import mscclc

    tensor = _empty(1024, dtype=torch.int32).fill_(rank)
    with mscclc.SymmetricMemory.of(tensor[256:512], dist.group.WORLD, backend="torch") as memory:
        assert memory.address() == tensor[256:].data_ptr()
        memory.barrier()
        for peer in range(ranks):
            _equal(memory.buffer(peer).view(torch.int32), peer)
        memory.barrier()
    plain = torch.zeros(4, device="cuda")
    try:
        mscclc.SymmetricMemory.of(plain, dist.group.WORLD, backend="torch")
    except mscclc.UsageError as error:
        assert "not lie in symmetric memory" in str(error), error
    else:
        raise AssertionError("memory that is not symmetric was taken")


def groups_made_again(rank, ranks, backend):
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm

    for round in range(3):
        group = dist.new_group()
        tensor = _empty(4096, dtype=torch.int32).fill_(10 * round + rank)
        handle = symm.rendezvous(tensor, group)
        handle.barrier()
        for peer in range(ranks):
            _equal(handle.get_buffer(peer, (4096,), torch.int32), 10 * round + peer)
        handle.barrier()
        torch.cuda.synchronize()
        del handle, tensor
        dist.destroy_process_group(group)


def nothing_stays(rank, ranks, backend):
    import gc

    import torch
    import torch.distributed as dist

    def once():
        memory = torch.ops.mscclc.symmetric_empty(8 << 20, torch.device("cuda", torch.cuda.current_device()))
        name = dist.group.WORLD.group_name
        handle = torch.ops.mscclc.symmetric_rendezvous(memory, name)
        torch.ops.mscclc.symmetric_barrier(handle)
        torch.cuda.synchronize()

    def left():
        gc.collect()
        dist.barrier()
        torch.cuda.synchronize()
        return torch.cuda.mem_get_info()[0], len(os.listdir("/proc/self/fd"))

    for _ in range(3):
        once()
    before = left()
    for _ in range(20):
        once()
    after = left()
    print(f"note: free bytes and descriptors {before} before, {after} after", flush=True)
    assert after[0] >= before[0] - (64 << 20) and after[1] <= before[1] + 4, (before, after)


# ---- Collectives on it, backend mscclc ----


def _loads():
    """How many plans were loaded that use buffers where they lie, and that copy them."""
    with open(os.environ["MSCCLC_DEBUG_FILE"]) as log:
        lines = [line for line in log if " executable " in line and "_packets'" not in line]
    uses = sum("zero copy" in line for line in lines)
    return uses, len(lines) - uses


def _promising_group():
    import torch.distributed as dist

    import mscclc.torch

    return dist.new_group(backend="mscclc", pg_options=mscclc.torch.Options(symmetric=True))


def collectives_without_a_copy(rank, ranks, backend):
    """All kinds, on views with an offset: no plan is loaded that copies, and results are right."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm

    count, group = 3 << 20, _promising_group()
    whole = _empty((2 * ranks + 1) * count, dtype=torch.float32)
    symm.rendezvous(whole, group)
    part, rows = whole[4 : 4 + count], whole[ranks * count : 2 * ranks * count].view(ranks, count)
    numbers = torch.arange(1.0, ranks + 1, device=whole.device).view(ranks, 1)
    before = _loads()
    dist.all_reduce(part.fill_(rank + 1), group=group)
    _equal(part, ranks * (ranks + 1) / 2, "all_reduce")
    dist.all_gather_into_tensor(rows, part.fill_(rank + 1), group=group)
    _equal(rows, numbers, "all_gather")
    rows.zero_()
    rows[rank] = rank + 1
    dist.all_gather_into_tensor(rows, rows[rank], group=group)
    _equal(rows, numbers, "all_gather in place")
    dist.reduce_scatter_tensor(part, rows, group=group)
    _equal(part, ranks * (rank + 1), "reduce_scatter")
    dist.all_to_all_single(rows[0], part.fill_(rank + 1), group=group)
    wanted = torch.arange(1, ranks + 1, device="cuda").repeat_interleave(count // ranks)
    _equal(rows[0][: wanted.numel()], wanted, "all_to_all")
    after = _loads()
    assert after[0] > before[0] and after[1] == before[1], (before, after)
    plain = torch.full((count,), float(rank + 1), device="cuda")
    dist.all_reduce(plain, group=group)
    _equal(plain, ranks * (ranks + 1) / 2, "plain")
    assert _loads()[1] > after[1], "memory that is not symmetric was not copied"
    dist.destroy_process_group(group)


def pool_and_plain_alike(rank, ranks, backend):
    """The same numbers in a memory pool, in another part of it and in plain memory: the same sums, and
    only plain memory is copied."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm

    count, group = 3 << 20, _promising_group()
    pool = symm.get_mem_pool(torch.device("cuda", torch.cuda.current_device()))
    with torch.cuda.use_mem_pool(pool):
        whole = torch.empty(2 * count, device="cuda")
    symm.rendezvous(whole, group)
    values = torch.arange(count, device="cuda") % 100 + float(rank)
    wanted = ranks * (torch.arange(count, device="cuda") % 100) + ranks * (ranks - 1) / 2
    used, copied = [], []
    for tensor in (whole[:count], whole[count - 4 : -4], torch.empty(count, device="cuda")):
        before = _loads()
        dist.all_reduce(tensor.copy_(values), group=group)
        _equal(tensor, wanted)
        uses, copies = (after - then for after, then in zip(_loads(), before))
        used.append(uses)
        copied.append(copies)
    assert used[0] > 0 and copied[:2] == [0, 0] and copied[2] > 0, (used, copied)
    dist.destroy_process_group(group)


def collectives_in_a_graph(rank, ranks, backend):
    """Captured after one call; replays see new data. Of a memory pool, too."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm

    group = _promising_group()
    pool = symm.get_mem_pool(torch.device("cuda", torch.cuda.current_device()))
    with torch.cuda.use_mem_pool(pool):
        pooled = torch.zeros(2 << 20, device="cuda")
    for tensor in (_empty(2 << 20, dtype=torch.float32).zero_(), pooled):
        symm.rendezvous(tensor, group)
        value = torch.zeros_like(tensor)
        dist.all_reduce(tensor, group=group)
        torch.cuda.synchronize()
        before = _loads()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            tensor.copy_(value)
            dist.all_reduce(tensor, group=group)
        for round in range(20):
            value.fill_(rank + round)
            graph.replay()
            _equal(tensor, ranks * (ranks - 1) / 2 + ranks * round, f"replay {round}")
        assert _loads() == before, "the capture has loaded another plan"
    dist.destroy_process_group(group)


def time_of_collectives(rank, ranks, backend):
    """Prints how long an all-reduce takes where it copies, and where it does not."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm

    group = _promising_group()
    tensor = _empty(8 << 20, dtype=torch.float32).zero_()
    symm.rendezvous(tensor, group)
    for count in (1 << 16, 1 << 20, 8 << 20):
        times = []
        for buffer in (torch.zeros(count, device="cuda"), tensor[:count]):
            for _ in range(5):
                dist.all_reduce(buffer, group=group)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(50):
                dist.all_reduce(buffer, group=group)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) * 20)
        print(f"note: all_reduce of {4 * count} bytes: {times[0]:.1f} us with copies, "
              f"{times[1]:.1f} without", flush=True)  # fmt: skip
    dist.destroy_process_group(group)


# ---- The class ----


def _memory(bytes, backend):
    import torch.distributed as dist

    import mscclc

    try:
        memory = mscclc.SymmetricMemory(bytes, dist.group.WORLD, device="cuda", backend=backend)
        memory.buffer()
        return memory
    except mscclc.UsageError as error:
        if backend == "nvshmem" and "libnvshmem" in str(error):
            raise Skipped(error) from None
        if backend == "nccl" and "gives no address" in str(error):
            raise Skipped(error) from None
        raise


def class_reads_every_peer(rank, ranks, backend):
    import torch

    memory = _memory(4 * COUNT, backend)
    memory.buffer().view(torch.float32).fill_(rank + 200)
    memory.barrier()
    for peer in range(ranks):
        assert memory.address(peer) != 0
        _equal(memory.buffer(peer).view(torch.float32), peer + 200.0, f"rank {peer}")
    memory.barrier()
    torch.cuda.synchronize()
    memory.close()


def class_writes(rank, ranks, backend):
    import torch

    memory = _memory(4 * ranks, backend)
    memory.buffer().zero_()
    memory.barrier()
    memory.buffer((rank + 1) % ranks).view(torch.int32)[rank] = 100 + rank
    memory.barrier()
    left = (rank - 1) % ranks
    wanted = [100 + left if i == left else 0 for i in range(ranks)]
    assert memory.buffer().view(torch.int32).tolist() == wanted
    memory.barrier()
    torch.cuda.synchronize()
    memory.close()


def class_again(rank, ranks, backend):
    """After the last memory of a group, its name is free, and there is memory again."""
    import mscclc
    from mscclc.symmetric import teams

    assert not teams._teams
    memory = _memory(1 << 20, backend)
    assert len(teams._teams) == 1 and memory.bytes == 1 << 20
    memory.barrier()
    try:
        _memory(4, "cuda" if backend != "cuda" else "native")
    except mscclc.UsageError as error:
        assert "cannot be" in str(error) and repr(backend) in str(error), error
    else:
        raise AssertionError("a second backend was taken")
    memory.close()
    assert not teams._teams


OF_TORCH = [
    every_rank_reads_every_peer, who_sees_a_write, signals, barriers_in_a_graph, kernels_of_torch,
    memory_pool, taken_without_a_copy, groups_made_again, nothing_stays,
    collectives_without_a_copy, pool_and_plain_alike, collectives_in_a_graph, time_of_collectives,
]  # fmt: skip
OF_CLASS = [class_reads_every_peer, class_writes, class_again]

if __name__ == "__main__":
    sys.exit(main())
