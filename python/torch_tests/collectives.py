"""Every collective, against gloo's result or the definition."""

import unittest.mock

import mscclc.torch
import torch
import torch.distributed as dist
from checks import device, equal, refused
from torch.distributed.device_mesh import init_device_mesh

TYPES = [
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int32,
    torch.int64, torch.bool,
]  # fmt: skip
ANY = [*TYPES, torch.complex64, torch.int16, torch.float8_e4m3fn]  # to be moved
COUNTS = [0, 1, 3, 1023, 100_003]


def _cases(types):
    return [(t, n) for t in types for n in COUNTS[: 5 if t == torch.float32 else 4]]


def all_reduce(ranks):
    for dtype, count in _cases(TYPES):
        found = ranks.values(count, dtype)
        wanted = found.clone()
        dist.all_reduce(found)
        dist.all_reduce(wanted, group=ranks.gloo)
        equal(found, wanted, f"{dtype} x {count}")


def all_reduce_by_each_reduction(ranks):
    ops = dist.ReduceOp
    for dtype in TYPES:
        bitwise = [ops.BAND, ops.BOR, ops.BXOR] if not dtype.is_floating_point else []
        for op in [ops.SUM, ops.PRODUCT, ops.MIN, ops.MAX, *bitwise]:
            found = ranks.values(1023, dtype, seed=1)
            rows = [ranks.values(1023, dtype, seed=1, rank=r) for r in range(ranks.size)]
            dist.all_reduce(found, op)
            equal(found, _reduced(rows, op), f"{dtype} by {op}")


def _reduced(rows, op):
    ops = dist.ReduceOp
    result = rows[0].clone()
    for row in rows[1:]:
        if op in (ops.SUM, ops.BOR) and row.dtype == torch.bool:
            result |= row
        elif op == ops.SUM:
            result += row
        elif op == ops.PRODUCT:
            result *= row
        elif op in (ops.MIN, ops.MAX):
            result = torch.minimum(result, row) if op == ops.MIN else torch.maximum(result, row)
        elif op == ops.BAND:
            result &= row
        elif op == ops.BOR:
            result |= row
        else:
            result ^= row
    return result


def average_and_factor(ranks):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        found = torch.full((100,), float(ranks.rank), dtype=dtype)
        dist.all_reduce(found, dist.ReduceOp.AVG)
        equal(found, torch.full((100,), (ranks.size - 1) / 2, dtype=dtype), f"{dtype}")
        found = torch.full((5,), float(ranks.rank + 1), dtype=dtype)
        dist.all_reduce(found, dist._make_nccl_premul_sum(0.5))
        sum = 0.5 * ranks.size * (ranks.size + 1) / 2
        equal(found, torch.full((5,), sum, dtype=dtype), f"{dtype}")
    factor = torch.tensor([2.0])
    found = torch.ones(3)
    dist.all_reduce(found, dist._make_nccl_premul_sum(factor))
    equal(found, torch.full((3,), 2.0 * ranks.size))


def orders(ranks):
    """Sums in the order of the ranks, or exact ones, whatever the size; what no plan adds so is refused."""
    for dtype in (torch.float32, torch.bfloat16):
        for count in (1, 1000, 100_003):
            rows = [_uneven(count, dtype, r) for r in range(ranks.size)]
            found = rows[ranks.rank].clone()
            with mscclc.torch.order("ranks"):
                dist.all_reduce(found)
            wanted = rows[0].float()
            for row in rows[1:]:
                wanted = wanted + row.float()
            equal(found, wanted.to(dtype), f"{dtype} x {count}")
    with mscclc.torch.order("exact"):
        found = torch.full((9,), (1e8, 1.0, -1e8, 0.0)[ranks.rank % 4])  # from the left: 0
        dist.all_reduce(found)
        if ranks.size == 4:
            equal(found, torch.ones(9))
        if ranks.size > 2:
            product = dist.ReduceOp.PRODUCT
            refused(lambda: dist.all_reduce(torch.ones(9), product, async_op=True), "'exact'")
    refused(lambda: mscclc.torch.order("sorted").__enter__(), "no order 'sorted'")
    refused(lambda: mscclc.torch.Options(order="sorted"), "no order 'sorted'")


def _uneven(count, dtype, rank):
    """Numbers whose sums are rounded, another row for each rank."""
    random = torch.Generator().manual_seed(77 + rank)
    return torch.randn(count, generator=random, device="cpu").to(device()).to(dtype)


def what_no_plan_reduces_is_refused(ranks):
    refused(lambda: dist.all_reduce(torch.ones(3, dtype=torch.int16)), "Short", "no plan")
    refused(lambda: dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND), "BAND", "Float")
    refused(lambda: dist.all_reduce(torch.ones(3, dtype=torch.bool), dist.ReduceOp.AVG), "AVG")
    found = torch.ones(3)  # the group is usable
    dist.all_reduce(found)
    equal(found, torch.full((3,), float(ranks.size)))


def reduce(ranks):
    for dtype, count in _cases(TYPES):
        for root in {0, ranks.size - 1}:
            found = ranks.values(count, dtype)
            wanted = found.clone()
            dist.reduce(found, root)
            if ranks.rank == root:
                rows = [ranks.values(count, dtype, rank=r) for r in range(ranks.size)]
                wanted = _reduced(rows, dist.ReduceOp.SUM)
            equal(found, wanted, f"{dtype} x {count} to {root}")


def reduce_complex(ranks):
    """As pairs of real numbers, which have no order, and whose product is another one."""
    ops, root, total = dist.ReduceOp, ranks.size - 1, ranks.size * (ranks.size + 1) / 2
    for dtype in (torch.complex64, torch.complex128):
        for op, factor in ((ops.SUM, 1), (ops.AVG, 1 / ranks.size), (dist._make_nccl_premul_sum(0.5), 0.5)):
            before = torch.full((7,), complex(ranks.rank + 1, -2), dtype=dtype)
            for found in (before.clone(), before.repeat_interleave(2)[::2]):
                dist.reduce(found, root, op)
                sum = torch.full((7,), complex(total, -2 * ranks.size) * factor, dtype=dtype)
                torch.testing.assert_close(found, sum if ranks.rank == root else before)
        part = torch.zeros(2, dtype=dtype)
        dist.reduce_scatter_tensor(part, torch.full((2 * ranks.size,), complex(1, ranks.rank), dtype=dtype))
        equal(part, torch.full((2,), complex(ranks.size, total - ranks.size), dtype=dtype))
        for op in (ops.MIN, ops.MAX, ops.PRODUCT, ops.BAND):
            refused(lambda: dist.reduce(torch.ones(3, dtype=dtype), root, op), "Complex", op.name)


def broadcast(ranks):
    for dtype, count in _cases(ANY):
        for root in {0, ranks.size - 1}:
            found = ranks.values(count, dtype)
            dist.broadcast(found, root)
            equal(found, ranks.values(count, dtype, rank=root), f"{dtype} x {count} of {root}")


def all_gather(ranks):
    for dtype, count in _cases(ANY):
        rows = [ranks.values(count, dtype, rank=r) for r in range(ranks.size)]
        found = [torch.zeros_like(row) for row in rows]
        dist.all_gather(found, rows[ranks.rank])
        for one, row in zip(found, rows):
            equal(one, row, f"list of {dtype} x {count}")
        flat = torch.zeros(count * ranks.size, dtype=dtype)
        dist.all_gather_into_tensor(flat, rows[ranks.rank])
        equal(flat, torch.cat(rows), f"{dtype} x {count}")


def all_gather_uneven(ranks):
    rows = [ranks.values(10 * r + 1, torch.float32, rank=r) for r in range(ranks.size)]
    found = [torch.zeros_like(row) for row in rows]
    dist.all_gather(found, rows[ranks.rank])
    for one, row in zip(found, rows):
        equal(one, row)


def all_gather_in_place(ranks):
    flat = torch.zeros(7 * ranks.size)
    own = flat[7 * ranks.rank : 7 * (ranks.rank + 1)]
    own.fill_(ranks.rank + 1)
    dist.all_gather_into_tensor(flat, own)
    equal(flat, torch.arange(1.0, ranks.size + 1).repeat_interleave(7))
    # All outputs may be one tensor, and the input one of the outputs.
    same = torch.zeros(4)
    dist.all_gather([same] * ranks.size, torch.full((4,), 3.0))
    equal(same, torch.full((4,), 3.0))
    if ranks.size > 1:
        other = flat[7 * ((ranks.rank + 1) % ranks.size) :][:7]
        refused(lambda: dist.all_gather_into_tensor(flat, other), "overlap")


def all_gather_into_one_tensor(ranks):
    """Outputs that are parts of one memory, in place at the own one."""
    whole = torch.zeros(ranks.size, 5)
    whole[ranks.rank] = ranks.values(5, torch.float32)
    dist.all_gather(list(whole.unbind()), whole[ranks.rank])
    rows = [ranks.values(5, torch.float32, rank=r) for r in range(ranks.size)]
    equal(whole, torch.stack(rows))
    same = torch.zeros(5)  # the same memory for all: that of some rank remains
    dist.all_gather([same] * ranks.size, rows[ranks.rank])
    assert any(torch.equal(same, row) for row in rows), same


def reduce_scatter(ranks):
    for dtype, count in _cases(TYPES):
        rows = [ranks.values(count * ranks.size, dtype, rank=r) for r in range(ranks.size)]
        wanted = _reduced(rows, dist.ReduceOp.SUM)[count * ranks.rank :][:count]
        found = torch.zeros(count, dtype=dtype)
        dist.reduce_scatter_tensor(found, rows[ranks.rank])
        equal(found, wanted, f"{dtype} x {count}")
        found.zero_()
        dist.reduce_scatter(found, list(rows[ranks.rank].chunk(ranks.size) if count else
                                        [found.clone() for _ in rows]))  # fmt: skip
        equal(found, wanted, f"list of {dtype} x {count}")


def reduce_scatter_uneven(ranks):
    inputs = [ranks.values(10 * r + 1, torch.int32, seed=r) for r in range(ranks.size)]
    before = [one.clone() for one in inputs]
    found = torch.zeros(10 * ranks.rank + 1, dtype=torch.int32)
    dist.reduce_scatter(found, inputs)
    rows = [ranks.values(10 * ranks.rank + 1, torch.int32, seed=ranks.rank, rank=r)
            for r in range(ranks.size)]  # fmt: skip
    equal(found, _reduced(rows, dist.ReduceOp.SUM))
    for one, other in zip(inputs, before):
        equal(one, other, "input")


def gather_and_scatter(ranks):
    for dtype, count in _cases(ANY):
        root = ranks.size - 1
        rows = [ranks.values(count, dtype, rank=r) for r in range(ranks.size)]
        here = ranks.rank == root
        found = [torch.zeros_like(row) for row in rows] if here else None
        dist.gather(rows[ranks.rank], found, dst=root)
        for one, row in zip(found or [], rows):
            equal(one, row, f"gather {dtype} x {count}")
        part = torch.zeros(count, dtype=dtype)
        dist.scatter(part, rows if here else None, src=root)
        equal(part, rows[ranks.rank], f"scatter {dtype} x {count}")


def all_to_all(ranks):
    n = ranks.size
    for dtype, count in _cases(ANY):
        rows = [ranks.values(count * n, dtype, rank=r) for r in range(n)]
        wanted = torch.cat([row[count * ranks.rank :][:count] for row in rows])
        found = torch.zeros(count * n, dtype=dtype)
        dist.all_to_all_single(found, rows[ranks.rank])
        equal(found, wanted, f"{dtype} x {count}")
        inputs = [rows[ranks.rank][count * r :][:count] for r in range(n)]
        parts = [torch.zeros(count, dtype=dtype) for _ in range(n)]
        if not dtype.is_complex:
            dist.all_to_all(parts, inputs)
            equal(torch.cat(parts), wanted, f"list of {dtype} x {count}")


def all_to_all_uneven(ranks):
    n, rank = ranks.size, ranks.rank
    sent = [(rank + 2 * d) % 4 for d in range(n)]  # rows to each rank
    expected = [(s + 2 * rank) % 4 for s in range(n)]
    source = torch.arange(sum(sent) * 3.0).view(-1, 3) + 1000 * rank
    found = torch.zeros(sum(expected), 3)
    wanted = torch.zeros_like(found)
    for function, group in ((found, None), (wanted, ranks.gloo)):
        dist.all_to_all_single(function, source, expected, sent, group=group)
    equal(found, wanted)
    inputs = [torch.full((count,), float(rank)) for count in sent]
    outputs = [torch.zeros(count) for count in expected]
    dist.all_to_all(outputs, inputs)
    for r, output in enumerate(outputs):
        equal(output, torch.full((expected[r],), float(r)))
    # Some ranks give splits, the others none.
    even = [2] * n if rank == 0 else None
    found = torch.zeros(2 * n)
    dist.all_to_all_single(found, torch.arange(2.0 * n) + 10 * rank, even, even)
    equal(found, torch.cat([torch.tensor([2.0 * rank, 2 * rank + 1]) + 10 * r for r in range(n)]))
    # Ranks that disagree all hear of it, and the group goes on.
    wrong = [1] * n
    wrong[0] += 1 if rank == n - 1 else 0
    refused(
        lambda: dist.all_to_all_single(torch.zeros(n), torch.zeros(sum(wrong)), [1] * n, wrong),
        f"rank {n - 1} sends 2 elements to rank 0, which expects 1",
    )
    dist.barrier()


def strides(ranks):
    n, rank = ranks.size, ranks.rank
    base = torch.arange(24.0).view(4, 6) + rank
    views = {
        "transposed": lambda t: t.t(),
        "strided": lambda t: t[:, ::2],
        "channels last": lambda t: t.reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
    }
    for name, view in views.items():
        found = view(base.clone())
        wanted = sum(view(base - rank + r) for r in range(n))
        dist.all_reduce(found)
        equal(found, wanted, name)
        whole = torch.zeros(n, *found.shape).transpose(1, 2)  # an output that is not contiguous
        rows = [view(base - rank + r).transpose(0, 1).contiguous() for r in range(n)]
        dist.all_gather_into_tensor(whole, rows[rank])
        equal(whole, torch.stack(rows), name)
        part = torch.zeros_like(base).t()
        dist.reduce_scatter_tensor(part, torch.cat([base.t()] * n))
        equal(part, sum((base - rank + r).t() for r in range(n)), name)
        moved = view(base.clone())
        dist.broadcast(moved, 0)
        equal(moved, view(base - rank), name)
    expanded = torch.ones(1).expand(5) * (rank + 1)
    dist.all_reduce(expanded)
    equal(expanded, torch.full((5,), n * (n + 1) / 2))


def other_tensors(ranks):
    # Of a sparse tensor of a GPU torch itself makes another call, which backends need not have.
    sparse = "sparse" if device().type == "cuda" else "dense"
    refused(lambda: dist.all_reduce(torch.eye(3).to_sparse()), sparse)
    if ranks.size > 1:
        refused(
            lambda: dist.all_gather_into_tensor(torch.ones(3), torch.ones(3)), "elements instead of"
        )
    quantized = torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.quint8)
    refused(lambda: dist.all_reduce(quantized), "Quantized")
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    refused(lambda: dist.all_reduce(nested), "Nested")
    rows = [torch.ones(3, dtype=torch.float64) for _ in range(ranks.size)]
    refused(lambda: dist.all_gather(rows, torch.ones(3)), "")  # of types that differ
    with torch.inference_mode():
        found = torch.ones(3)
        dist.all_reduce(found)
        assert found.sum() == 3 * ranks.size
    weight = torch.nn.Parameter(torch.ones(3))
    dist.broadcast(weight.data, 0)
    with torch.no_grad():
        dist.all_reduce(weight)
    equal(weight.detach(), torch.full((3,), float(ranks.size)))


def works(ranks):
    data = torch.ones(1000)
    work = dist.all_reduce(data, async_op=True)
    assert work.wait() and work.wait()
    if device().type == "cuda":
        torch.cuda.synchronize()  # the stream waits, and not the host
    assert work.is_completed() and work.is_success()
    equal(data, torch.full((1000,), float(ranks.size)))
    # A work, or what it works on, may be forgotten.
    for _ in range(20):
        dist.all_reduce(torch.ones(1000), async_op=True)
    data = torch.ones(1000)
    future = dist.all_reduce(data, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2)
    equal(doubled.wait(), torch.full((1000,), 2.0 * ranks.size))
    # As NCCL's: that of an all-gather of one size has a tensor, whose rows are the inputs.
    rows = [torch.zeros(2, 3) for _ in range(ranks.size)]
    mine = torch.full((2, 3), float(ranks.rank))
    gathered = dist.all_gather(rows, mine, async_op=True).get_future().wait()
    assert len(gathered) == 1
    equal(gathered[0], torch.stack([torch.full((2, 3), float(r)) for r in range(ranks.size)]))
    equal(torch.stack(rows), gathered[0])
    deadline = dist.all_reduce(torch.ones(3), async_op=True)
    while not deadline.is_completed():
        pass


def asked_until_they_end(ranks):
    """What a work lets go of at its end needs the interpreter, which the thread has that asks."""
    n, rank = ranks.size, ranks.rank
    found = torch.zeros(1000 * n)
    for i in range(100):
        work = dist.all_gather_into_tensor(found, torch.full((1000,), float(rank + i)), async_op=True)
        while not work.is_completed():
            pass
        equal(found, torch.arange(float(n)).repeat_interleave(1000) + i)


def callbacks_that_wait(ranks):
    """What is called at the end of a collective makes others, of the same group, and waits for them."""
    n = ranks.size

    def more(done, depth):
        found = done.value()[0] * 1.0
        dist.all_reduce(found)
        if depth == 0:
            return found
        next_one = dist.all_reduce(torch.ones(3), async_op=True).get_future()
        return next_one.then(lambda last: more(last, depth - 1)).wait() + found

    futures = []
    for _ in range(2):
        futures.append(dist.all_reduce(torch.ones(3), async_op=True).get_future())
        result = futures[-1].then(lambda done: more(done, 2))
        equal(result.wait(), torch.full((3,), 3.0 * n * n))


def errors_of_works(ranks):
    """They name the collective, also where its stream has it and the reason comes later."""
    group, found = dist.new_group(), torch.ones(3)
    dist.all_reduce(found, group=group)
    equal(found, torch.full((3,), float(ranks.size)))
    dist.barrier(ranks.gloo)  # it has ended on all ranks
    if ranks.rank == 0 and ranks.size > 1:  # the others do not come
        work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
        group._get_backend(device()).abort()
        refused(lambda: work, "mscclc all_reduce 2 of rank 0 in group", "was aborted")
    dist.barrier(ranks.gloo)
    dist.destroy_process_group(group)


def groups(ranks):
    n, rank = ranks.size, ranks.rank
    members = list(range(0, n, 2))
    part = dist.new_group(members)
    if rank in members:
        data = torch.ones(3)
        dist.all_reduce(data, group=part)
        equal(data, torch.full((3,), float(len(members))))
        assert dist.get_rank(part) == members.index(rank)
        dist.destroy_process_group(part)
    pairs = [dist.new_group([r, (r + 1) % n]) for r in range(n)] if n > 2 else []
    for r, pair in enumerate(pairs):
        if rank in (r, (r + 1) % n):
            data = torch.full((2,), float(rank))
            dist.broadcast(data, r, group=pair)
            equal(data, torch.full((2,), float(r)))
    if n > 2:  # a group in a group
        most = dist.new_group(range(n - 1))
        two = dist.new_group([0, 1])
        if rank < 2:
            data = torch.full((3,), rank + 1.0)
            for group, times in ((most, n - 1), (two, 2), (most, n - 1)):
                found = torch.ones(3)
                dist.all_reduce(found, group=group)
                equal(found, torch.full((3,), float(times)))
            dist.all_reduce(data, group=two)
            equal(data, torch.full((3,), 3.0))
        elif rank < n - 1:
            for _ in range(2):
                dist.all_reduce(torch.ones(3), group=most)
        else:
            refused(lambda: dist.all_reduce(torch.ones(3), group=most) or _not_a_member(), "no member")
    whole = dist.new_group()  # works of two groups, waited for in another order
    first, second = torch.ones(3), torch.ones(3)
    works = [dist.all_reduce(first, group=whole, async_op=True), dist.all_reduce(second, async_op=True)]
    for work in reversed(works):
        work.wait()
    equal(first, second)


def _not_a_member():
    """What torch does with a call of a rank outside the group: it warns, and does nothing."""
    raise AssertionError("no member")


def coalescing(ranks):
    n = ranks.size
    data = [torch.full((i + 1,), float(ranks.rank)) for i in range(4)]
    with dist._coalescing_manager():
        for one in data:
            dist.all_reduce(one)
    for i, one in enumerate(data):
        equal(one, torch.full((i + 1,), n * (n - 1) / 2))
    outputs = [torch.zeros(2 * n) for _ in range(3)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for output in outputs:
            dist.all_gather_into_tensor(output, torch.full((2,), float(ranks.rank)))
    manager.wait()
    for output in outputs:
        equal(output, torch.arange(float(n)).repeat_interleave(2))
    parts = [torch.zeros(2) for _ in range(3)]
    with dist._coalescing_manager(device=device()):
        for part in parts:
            dist.reduce_scatter_tensor(part, torch.ones(2 * n))
    for part in parts:
        equal(part, torch.full((2,), float(n)))
    found = torch.ones(1)
    dist.all_reduce(found)
    equal(found, torch.full((1,), float(n)))


def messages(ranks):
    n, rank = ranks.size, ranks.rank
    if n == 1:
        return
    following, previous = (rank + 1) % n, (rank - 1) % n
    for dtype in (torch.float32, torch.int64, torch.bool):
        found = torch.zeros(1000, dtype=dtype)
        ops = [
            dist.P2POp(dist.irecv, found, previous),
            dist.P2POp(dist.isend, ranks.values(1000, dtype), following),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        equal(found, ranks.values(1000, dtype, rank=previous))
    # All send first; then one after the other; in order.
    work = dist.isend(torch.full((3,), float(rank)), following)
    found = torch.zeros(3)
    dist.recv(found, previous)
    work.wait()
    equal(found, torch.full((3,), float(previous)))
    for i in range(5):
        if rank == 0:
            dist.send(torch.tensor([i]), 1)
        elif rank == 1:
            number = torch.zeros(1, dtype=torch.int64)
            dist.recv(number, 0)
            assert number.item() == i
    refused(lambda: dist.recv(torch.zeros(1)), "recvAnysource")


def messages_to_oneself(ranks):
    n, rank = ranks.size, ranks.rank
    following, previous = (rank + 1) % n, (rank - 1) % n
    sent = [ranks.values(count, torch.float32, seed=count) for count in (4, 5, 6)]
    found = [torch.zeros(4), torch.zeros(5), torch.zeros(3, 2).t()]
    # In the order of the batch, whichever comes first, and beside other messages.
    ops = [
        dist.P2POp(dist.irecv, found[0], rank),
        dist.P2POp(dist.isend, sent[0], rank),
        dist.P2POp(dist.isend, sent[2], rank),
        dist.P2POp(dist.irecv, found[2], rank),
    ]
    if n > 1:
        ops.insert(1, dist.P2POp(dist.isend, sent[1], following))
        ops.append(dist.P2POp(dist.irecv, found[1], previous))
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    equal(found[0], sent[0])
    equal(found[2].flatten(), sent[2])
    if n > 1:
        equal(found[1], ranks.values(5, torch.float32, seed=5, rank=previous))

    def batch(*ops):
        return lambda: dist.batch_isend_irecv([dist.P2POp(op, data, rank) for op, data in ops])

    refused(batch((dist.isend, sent[0])), "sends itself 1", "receives 0")
    refused(batch((dist.isend, sent[0]), (dist.irecv, found[1])), "4 of Float", "5 of Float")
    refused(lambda: dist.isend(sent[0], rank), "batch_isend_irecv")
    batch((dist.isend, sent[0]), (dist.irecv, found[0]))()[0].wait()  # nothing is left of those


def memory_pools(ranks):
    """They need no registration, and code that registers them for NCCL runs."""
    backend = dist.group.WORLD._get_backend(device())
    pool = torch.cuda.MemPool.__new__(torch.cuda.MemPool)  # a real one needs a GPU
    assert backend.register_mem_pool(pool) is None
    assert backend.register_mem_pool(pool, symm=True) is None
    assert backend.deregister_mem_pool(pool) is None
    refused(lambda: backend.register_mem_pool(7), "torch.cuda.MemPool", "int")
    assert not hasattr(ranks.gloo._get_backend(torch.device("cpu")), "register_mem_pool")


def objects(ranks):
    n, rank = ranks.size, ranks.rank
    found = [None] * n
    dist.all_gather_object(found, {"rank": rank, "more": "x" * rank})
    assert found == [{"rank": r, "more": "x" * r} for r in range(n)]
    shared = [("anything", 7) if rank == 0 else None]
    dist.broadcast_object_list(shared, 0)
    assert shared == [("anything", 7)]
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(n)] if rank == 0 else None, 0)
    assert out == [f"for {rank}"]
    gathered = [None] * n if rank == 0 else None
    dist.gather_object(rank, gathered, 0)
    assert rank != 0 or gathered == list(range(n))


def meshes(ranks):
    """Of two dimensions, by split_group(), as where init_process_group() was given a GPU."""
    world, n = dist.group.WORLD, ranks.size
    if not world._get_backend(device()).supports_splitting:  # torch 2.8, say
        return
    rows = 2 if n % 2 == 0 else 1
    world.bound_device_id = torch.device("cuda", device().index or 0)
    try:
        with unittest.mock.patch.object(torch.cuda, "is_available", lambda: True):
            mesh = init_device_mesh(device().type, (rows, n // rows), mesh_dim_names=("outer", "inner"))
    finally:
        world.bound_device_id = None
    for name in mesh.mesh_dim_names:
        group, members = mesh.get_group(name), mesh[name].mesh.tolist()
        found = torch.full((3,), float(ranks.rank))
        dist.all_reduce(found, group=group)
        equal(found, torch.full((3,), float(sum(members))), f"{members}")
        assert ranks.rank in members and dist.get_process_group_ranks(group) == members
        assert group.group_desc == (f"mesh_{name}" if len(members) < n else "default_pg"), group.group_desc


def sequence_numbers(ranks):
    group = dist.new_group()
    backend = group._get_backend(device())
    before = backend._get_sequence_number_for_group()
    dist.all_reduce(torch.ones(1), group=group)
    dist.barrier(group)
    after = backend._get_sequence_number_for_group()
    assert after == before + 2, (before, after)
    found = [None] * ranks.size
    dist.all_gather_object(found, after, group=ranks.gloo)
    assert found == [after] * ranks.size


CHECKS = [
    all_reduce, all_reduce_by_each_reduction, average_and_factor, orders, what_no_plan_reduces_is_refused,
    reduce, reduce_complex, broadcast, all_gather, all_gather_uneven, all_gather_in_place,
    all_gather_into_one_tensor, reduce_scatter,
    reduce_scatter_uneven, gather_and_scatter, all_to_all, all_to_all_uneven, strides, other_tensors,
    works, asked_until_they_end, callbacks_that_wait, errors_of_works, groups, coalescing, messages, messages_to_oneself,
    memory_pools, objects, meshes, sequence_numbers,
]  # fmt: skip
