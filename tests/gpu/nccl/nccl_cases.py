"""Conformance cases of NCCL's interface that need GPUs: streams, captures and graphs.

    LD_PRELOAD=/opt/mscclc/lib/mscclc/libnccl.so.2 python3 tests/gpu/nccl/nccl_cases.py [--ranks N] [--only CASE]

One thread drives a GPU for each rank, in groups, by the C interface; PyTorch gives memory and
streams. The numbers are those of tests/nccl/cases.def; symmetric windows come beside them.
Without LD_PRELOAD the same runs on NCCL
alone. A line for each case that fails; the last line says how many passed and failed.
"""
import argparse
import ctypes
import sys
import threading
import traceback

import torch
from case_ranks import (FLOAT, SUM, AVG, INVALID_USAGE, GLOBAL, THREAD_LOCAL, RELAXED, LEGACY,
                        PER_THREAD, COUNT, P, Z, Buffer, Ranks, by, cuda, equal, gpu, must, nccl,
                        runs, use)


def sums_in(ranks, allocators):
    for allocate, free in allocators:
        buffer = Buffer(ranks, allocate, free)
        buffer.set(3)
        buffer.all_reduce()
        buffer.check(3 * ranks.count)
        buffer.end()


def host_and_managed(ranks):
    sums_in(ranks, [(by(cuda.cudaHostAlloc, ctypes.c_uint(1)), cuda.cudaFreeHost),
                    (by(cuda.cudaMallocManaged, ctypes.c_uint(1)), cuda.cudaFree)])


def allocators(ranks):
    sums_in(ranks, [(by(cuda.cudaMalloc), cuda.cudaFree),
                    (by(cuda.cudaMallocAsync, P(0)), cuda.cudaFree),
                    (by(nccl.ncclMemAlloc), nccl.ncclMemFree)])


def many_elements(ranks):
    count = 2**31 + 24
    xs = [torch.full((count,), d + 1, dtype=torch.int8, device=gpu(d))
          for d in range(ranks.count)]
    ranks.wait()
    must(ranks.group(lambda r, comm: nccl.ncclAllReduce(
        P(xs[r].data_ptr()), P(xs[r].data_ptr()), Z(count), 0, SUM, comm, P(ranks.handles()[r]))))
    ranks.wait()
    for x in xs:
        for part in x.split(2**28):
            assert torch.all(part == ranks.count * (ranks.count + 1) // 2), "a wrong sum"


def averages(ranks):
    """Of the largest numbers, in all float types, at odd addresses and sizes; then captured."""
    types = [(6, torch.float16, 65504.0), (7, torch.float32, 3e38), (8, torch.float64, 1.7e308),
             (9, torch.bfloat16, 3.3895313892515355e38)]
    exact = ranks.count & (ranks.count - 1) == 0  # then the factor is
    for number, dtype, most in types:
        value = most if exact else 3.0 * ranks.count
        for count, first in ((1, 0), (COUNT, 0), (COUNT, 1), (1 << 20, 3)):
            xs, ys = ([torch.full((n + first,), value, dtype=dtype, device=gpu(d))[first:]
                       for d in range(ranks.count)] for n in (count * ranks.count, count))
            ranks.wait()
            must(ranks.group(lambda r, comm: nccl.ncclReduceScatter(
                P(xs[r].data_ptr()), P(ys[r].data_ptr()), Z(count), number, AVG, comm,
                P(ranks.handles()[r]))))
            must(ranks.group(lambda r, comm: nccl.ncclAllReduce(
                P(xs[r].data_ptr()), P(xs[r].data_ptr()), Z(count), number, AVG, comm,
                P(ranks.handles()[r]))))
            ranks.wait()
            for r in range(ranks.count):
                if exact:
                    equal(xs[r], value)
                    equal(ys[r], value)
                else:
                    assert torch.allclose(xs[r].double().cpu(), torch.tensor(value).double(), rtol=0.02)
                    assert torch.allclose(ys[r].double().cpu(), torch.tensor(value).double(), rtol=0.02)
    xs = ranks.buffers(2.0)
    _, execs = ranks.capture(lambda: must(ranks.all_reduce(xs, op=lambda r: AVG)))
    for _ in range(3):
        for r in range(ranks.count):
            use(r)
            xs[r].fill_(2.0 * (r + 1))
        ranks.wait()
        ranks.launch(execs)
        ranks.wait()
        for r in range(ranks.count):
            assert torch.allclose(xs[r].cpu(), torch.tensor(float(ranks.count + 1)))


def group_on_two_streams(ranks):
    """A group is a point where all its streams meet."""
    xs, ys = ranks.buffers(1, 1 << 22), ranks.buffers(2, 1 << 22)
    seen = [ranks.buffers(0, 1 << 22) for _ in range(2)]
    must(nccl.ncclGroupStart())
    ranks.all_reduce(xs)
    ranks.all_reduce(ys, ranks.handles(ranks.others))
    must(nccl.ncclGroupEnd())
    for to, what, streams in ((seen[0], ys, ranks.streams), (seen[1], xs, ranks.others)):
        for r in range(ranks.count):
            use(r)
            runs(cuda.cudaMemcpyAsync(P(to[r].data_ptr()), P(what[r].data_ptr()),
                                      Z(to[r].nbytes), 3, P(streams[r].cuda_stream)))
    ranks.wait()
    for r in range(ranks.count):
        equal(seen[0][r], 2.0 * ranks.count)
        equal(seen[1][r], float(ranks.count))


def graph_outlives(ranks):
    """NCCL's communicators wait for their graphs when they are destroyed, ours do not."""
    own = Ranks(ranks.count)
    xs = own.buffers(1)
    own.capture(lambda: must(own.all_reduce(xs)))
    ended = threading.Thread(target=own.destroy)
    ended.start()
    ended.join(0.3)
    own.destroy_graphs()
    ended.join(20)
    assert not ended.is_alive(), "ncclCommDestroy() has not returned"
    must(ranks.all_reduce(xs))
    ranks.wait()
    equal(xs[0], float(ranks.count))


def shrink_of_stuck(ranks):
    """Rank 0's kernel waits for a rank that does not call."""
    own = Ranks(ranks.count)
    xs = own.buffers(1)
    must(own.all_reduce(xs))
    own.wait()
    use(0)
    stream = P(own.handles()[0])
    must(nccl.ncclAllReduce(P(xs[0].data_ptr()), P(xs[0].data_ptr()), Z(COUNT), FLOAT, SUM,
                            P(own.comms[0]), stream))
    others = (ctypes.c_int * (ranks.count - 1))(*range(1, ranks.count))
    alone, shrink_abort = P(), 1
    must(nccl.ncclCommShrink(P(own.comms[0]), others, ranks.count - 1, ctypes.byref(alone), None,
                             shrink_abort))
    runs(cuda.cudaStreamSynchronize(stream))
    ys = own.buffers(5)
    must(nccl.ncclAllReduce(P(ys[0].data_ptr()), P(ys[0].data_ptr()), Z(COUNT), FLOAT, SUM, alone,
                            stream))
    own.wait()
    equal(ys[0], 5.0)
    must(nccl.ncclCommDestroy(alone))
    for comm in own.comms:
        must(nccl.ncclCommAbort(P(comm)))


def current_device(ranks):
    for device in set(map(gpu, range(ranks.count))):
        torch.cuda.set_device(device)
        xs = ranks.buffers(1)
        must(ranks.all_reduce(xs))
        now = ctypes.c_int(-1)
        runs(cuda.cudaGetDevice(ctypes.byref(now)))
        assert now.value == device, f"device {now.value} is current, {device} was"
    ranks.wait()  # its memory goes to the next case


def streams_in_turns(ranks):
    xs = ranks.buffers(1)
    for i in range(10):
        must(ranks.all_reduce(xs, ranks.handles(ranks.others if i % 2 else None)))
    ranks.wait()
    for x in xs:
        equal(x, float(ranks.count ** 10))


def default_streams(ranks):
    for stream in (0, LEGACY, PER_THREAD):
        xs = ranks.buffers(1)
        must(ranks.all_reduce(xs, [stream] * ranks.count))
        ranks.wait()
        for x in xs:
            equal(x, float(ranks.count))


def collective_calls(ranks, send, receive, one):
    """Every collective, with what it makes of `one` in every element of `send`, in `receive`."""
    n = ranks.count
    yield "AllReduce", lambda r, c, s: nccl.ncclAllReduce(
        send[r], receive[r], Z(COUNT), FLOAT, SUM, c, s), COUNT, n * one
    yield "Broadcast", lambda r, c, s: nccl.ncclBroadcast(
        send[r], receive[r], Z(COUNT), FLOAT, 0, c, s), COUNT, one
    yield "AllGather", lambda r, c, s: nccl.ncclAllGather(
        send[r], receive[r], Z(COUNT), FLOAT, c, s), n * COUNT, one
    yield "ReduceScatter", lambda r, c, s: nccl.ncclReduceScatter(
        send[r], receive[r], Z(COUNT), FLOAT, SUM, c, s), COUNT, n * one
    if hasattr(nccl, "ncclAlltoAll"):
        yield "AlltoAll", lambda r, c, s: nccl.ncclAlltoAll(
            send[r], receive[r], Z(COUNT), FLOAT, c, s), n * COUNT, one


def captured_collectives(ranks):
    n = ranks.count
    sent, received = ranks.buffers(1, n * COUNT), ranks.buffers(0, n * COUNT)
    send, receive = ([P(x.data_ptr()) for x in xs] for xs in (sent, received))
    for name, call, count, factor in collective_calls(ranks, send, receive, 1):
        _, execs = ranks.capture(lambda: must(ranks.group(
            lambda r, c: call(r, c, P(ranks.handles()[r])))))
        for value in range(1, 101):
            for x in sent:
                x.fill_(float(value))
            ranks.wait()
            ranks.launch(execs)
            ranks.wait()
            for x in received:
                assert torch.all(x[:count] == float(value * factor)), f"{name}, replay {value}"


def first_use_in_capture(ranks):
    for mode, count in ((GLOBAL, 123457), (THREAD_LOCAL, 777777), (RELAXED, 3000001)):
        xs = ranks.buffers(1, count)
        _, execs = ranks.capture(lambda: must(ranks.all_reduce(xs)), mode)
        ranks.launch(execs)
        ranks.wait()
        for x in xs:
            equal(x, float(ranks.count))


def group_in_capture(ranks):
    xs, ys = ranks.buffers(1), ranks.buffers(2)

    def body():
        must(nccl.ncclGroupStart())
        for buffers in (xs, ys):
            ranks.all_reduce(buffers)
        must(nccl.ncclGroupEnd())
    _, execs = ranks.capture(body)
    ranks.launch(execs)
    ranks.wait()
    for x, y in zip(xs, ys):
        equal(x, float(ranks.count))
        equal(y, 2.0 * ranks.count)


def mixed_with_eager(ranks):
    xs = ranks.buffers(1)
    must(ranks.all_reduce(xs))
    _, execs = ranks.capture(lambda: must(ranks.all_reduce(xs)))
    for _ in range(3):
        ranks.launch(execs)
        must(ranks.all_reduce(xs))
    ranks.wait()
    for x in xs:
        equal(x, float(ranks.count ** 7))


def two_graphs(ranks):
    xs = ranks.buffers(1)
    graphs = [ranks.capture(lambda: must(ranks.all_reduce(xs)))[1] for _ in range(2)]
    for i in range(8):
        ranks.launch(graphs[i % 2])
    ranks.wait()
    for i in range(2):  # on two streams, the second after the first
        ranks.launch(graphs[i], ranks.others if i else None)
        ranks.wait()
    for x in xs:
        equal(x, float(ranks.count ** 10))


def replays_beside_calls(ranks):
    """Nothing but the library orders the graph and the calls beside it, which share its memory."""
    inputs = {value: ranks.buffers(value, 1 << 18) for value in (1, 2)}
    xs, ys = ranks.buffers(0, 1 << 18), ranks.buffers(0, 1 << 18)

    def reduce(to, value, streams):
        for r in range(ranks.count):
            use(r)
            runs(cuda.cudaMemcpyAsync(P(to[r].data_ptr()), P(inputs[value][r].data_ptr()),
                                      Z(to[r].nbytes), 3, P(streams[r])))
        must(ranks.all_reduce(to, streams))

    graphs = [ranks.capture(lambda: [reduce(xs, 1, ranks.handles()) for _ in range(4)])[1]
              for _ in range(2)]
    for i in range(50):
        ranks.launch(graphs[i % 2])
        reduce(ys, 2, ranks.handles(ranks.others))
        if i % 10 == 9:
            ranks.wait()
            for r in range(ranks.count):
                equal(xs[r], float(ranks.count))
                equal(ys[r], 2.0 * ranks.count)
                xs[r].zero_()
                ys[r].zero_()
            ranks.wait()


def captured_and_not(ranks):
    xs, ys = ranks.buffers(1), ranks.buffers(1)
    results = []

    def body():
        must(nccl.ncclGroupStart())
        ranks.all_reduce(xs)
        ranks.all_reduce(ys, ranks.handles(ranks.others))
        results.append(nccl.ncclGroupEnd())
    try:
        ranks.capture(body)
    except AssertionError:
        pass  # the capture may be lost
    assert results == [INVALID_USAGE], f"the group's result is {results}"
    must(ranks.all_reduce(ys))
    ranks.wait()
    equal(ys[0], float(ranks.count))


def updated_graph(ranks):
    xs, ys = ranks.buffers(1), ranks.buffers(1)
    _, execs = ranks.capture(lambda: must(ranks.all_reduce(xs)))
    graphs, _ = ranks.capture(lambda: must(ranks.all_reduce(ys)))
    for r in range(ranks.count):
        use(r)
        info = (ctypes.c_byte * 64)()
        runs(cuda.cudaGraphExecUpdate(execs[r], graphs[r], info))
    ranks.launch(execs)
    ranks.wait()
    equal(xs[0], 1.0)
    equal(ys[0], float(ranks.count))


def failed_capture(ranks):
    xs = ranks.buffers(1)

    def body():
        must(ranks.all_reduce(xs))
        for s in ranks.handles():
            assert cuda.cudaStreamSynchronize(P(s)) != 0, "a captured stream can be waited for"
    try:
        ranks.capture(body)
        raise RuntimeError("the capture has not failed")
    except AssertionError:
        cuda.cudaGetLastError()
    must(ranks.all_reduce(xs))
    ranks.wait()
    equal(xs[0], float(ranks.count))


def plan_and_fallback(ranks):
    ops = [ctypes.c_int() for _ in range(ranks.count)]
    two = ctypes.c_float(2)
    for r, op in enumerate(ops):
        must(nccl.ncclRedOpCreatePreMulSum(ctypes.byref(op), ctypes.byref(two), FLOAT, 1,
                                           P(ranks.comms[r])))
    xs = ranks.buffers(1)

    def body():
        must(ranks.all_reduce(xs))
        must(ranks.all_reduce(xs, op=lambda r: ops[r].value))
        must(ranks.all_reduce(xs))
    _, execs = ranks.capture(body)
    for _ in range(2):
        ranks.launch(execs)
    ranks.wait()
    equal(xs[0], float((2 * ranks.count ** 3) ** 2))


class CallConfig(ctypes.Structure):
    """ncclCollConfig_t of 2.32."""
    _fields_ = [("size", Z), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("ext", P),
                ("counts", ctypes.c_int * 4), ("algorithms", ctypes.c_char_p),
                ("force", ctypes.c_int), ("policy", ctypes.c_int), ("tag", ctypes.c_uint64),
                ("event", P)]

    def __init__(self, event):
        undefined = -2**31
        super().__init__(72, 0xcafebeef, 23203, None, (undefined,) * 4, None, 1, undefined, 0, event)


def events(ranks):
    made = [P() for _ in range(ranks.count)]
    for r, event in enumerate(made):
        use(r)
        runs(cuda.cudaEventCreateWithFlags(ctypes.byref(event), ctypes.c_uint(2)))  # without times
    return made


def event_after_plan(ranks):
    """What waits for a call's event, on a stream of its own, sees the call's result."""
    if not hasattr(nccl, "ncclAllReduceConfig"):
        return  # NCCL before 2.31, alone
    xs, seen = ranks.buffers(0, 1 << 20), ranks.buffers(0, 1 << 20)
    done, read = events(ranks), events(ranks)
    configs = [CallConfig(event) for event in done]

    def add_and_read():
        must(ranks.group(lambda r, comm: nccl.ncclAllReduceConfig(
            P(xs[r].data_ptr()), P(xs[r].data_ptr()), Z(xs[r].numel()), FLOAT, SUM, comm,
            P(ranks.handles()[r]), ctypes.byref(configs[r]))))
        for r in range(ranks.count):
            use(r)
            own, other = P(ranks.handles()[r]), P(ranks.others[r].cuda_stream)
            runs(cuda.cudaStreamWaitEvent(other, done[r], ctypes.c_uint(0)))
            runs(cuda.cudaMemcpyAsync(P(seen[r].data_ptr()), P(xs[r].data_ptr()),
                                      Z(xs[r].nbytes), 3, other))
            runs(cuda.cudaEventRecord(read[r], other))
            runs(cuda.cudaStreamWaitEvent(own, read[r], ctypes.c_uint(0)))
    _, execs = ranks.capture(add_and_read)
    for run in (add_and_read, lambda: ranks.launch(execs)) * 3:
        for r in range(ranks.count):
            xs[r].fill_(r + 1.0)
            seen[r].zero_()
        ranks.wait()
        with torch.cuda.stream(ranks.streams[0]):
            torch.cuda._sleep(50_000_000)  # the call of rank 0 comes late
        run()
        ranks.wait()
        for x in seen:
            equal(x, ranks.count * (ranks.count + 1) / 2)
    for event in done + read:
        runs(cuda.cudaEventDestroy(event))


def windows(ranks):
    """Sums and gathers between parts of symmetric windows, eager and in graphs."""
    symmetric, parts = 1, 4 * ranks.count
    own = Ranks(ranks.count)
    for _ in range(3):
        buffer = Buffer(own, by(nccl.ncclMemAlloc, parts=parts), nccl.ncclMemFree)
        made = [P() for _ in range(own.count)]
        must(own.group(lambda r, comm: nccl.ncclCommWindowRegister(
            comm, buffer.places[r], Z(4 * COUNT * parts), ctypes.byref(made[r]), symmetric)))
        for first in (0, own.count):
            window_calls(own, buffer, first)
        own.destroy_graphs()
        for r, window in enumerate(made):
            must(nccl.ncclCommWindowDeregister(P(own.comms[r]), window))
        buffer.end()
    own.destroy()


def window_calls(ranks, buffer, first):
    """The part `first` of each window summed up, and gathered, in those from `first` + N on."""
    n = ranks.count

    def at(rank, part):
        return P(buffer.places[rank].value + 4 * COUNT * part)

    def add(r, comm):
        return nccl.ncclAllReduce(at(r, first), at(r, first + n), Z(COUNT), FLOAT, SUM, comm,
                                  P(ranks.handles()[r]))

    def gather(r, comm):
        return nccl.ncclAllGather(at(r, first), at(r, first + n), Z(COUNT), FLOAT, comm,
                                  P(ranks.handles()[r]))
    for call, wanted in ((add, [n * (n + 1) / 2]), (gather, range(1, n + 1))):
        _, execs = ranks.capture(lambda: must(ranks.group(call)))
        for run in (lambda: must(ranks.group(call)), lambda: ranks.launch(execs)) * 2:
            for r in range(n):
                buffer.fill(r, first, r + 1)
                buffer.fill(r, first + n, 0)
            run()
            ranks.wait()
            for r in range(n):
                for i, value in enumerate(wanted):
                    buffer.check_part(r, first + n + i, value)


CASES = [(48, many_elements), (50, host_and_managed), (51, allocators), (56, group_on_two_streams),
         (66, current_device), (67, streams_in_turns), (68, default_streams),
         (69, captured_collectives), (70, first_use_in_capture), (71, group_in_capture),
         (72, mixed_with_eager), (73, two_graphs), (73, replays_beside_calls), (74, captured_and_not),
         (75, updated_graph), (76, graph_outlives), (77, failed_capture), (78, plan_and_fallback),
         (105, event_after_plan)]
OURS = [(35, shrink_of_stuck)]  # last: NCCL alone need not survive it
BESIDE = [("averages", averages), ("beside them", windows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    parser.add_argument("--only", help="a case by its function's name")
    options = parser.parse_args()
    front = "mscclc in front" if hasattr(nccl, "mscclc_nccl_front") else "NCCL alone"
    print(f"PyTorch {torch.__version__}, {front}, {options.ranks} ranks on "
          f"{torch.cuda.device_count()} GPUs", flush=True)
    ranks = Ranks(options.ranks)
    failed = 0
    cases = BESIDE + CASES + (OURS if hasattr(nccl, "mscclc_nccl_front") else [])
    if options.only:
        cases = [one for one in cases if one[1].__name__ == options.only]
    for number, case in cases:
        try:
            case(ranks)
            print(f"case {number}: {case.__name__}", flush=True)
        except Exception:  # every case is tried
            failed += 1
            print(f"case {number}: {case.__name__} FAILED\n{traceback.format_exc()}", flush=True)
    ranks.destroy_graphs()
    ranks.destroy()
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
