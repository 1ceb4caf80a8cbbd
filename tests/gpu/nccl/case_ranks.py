"""The ranks of one process for nccl_cases.py: their GPUs, streams and graphs, by the C interfaces of
NCCL and CUDA; buffers of any allocator."""
import ctypes

import torch
from nccl_ranks import UniqueId

FLOAT, SUM, AVG, SUCCESS, INVALID_USAGE = 7, 0, 4, 0, 5
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2  # cudaStreamCaptureMode
LEGACY, PER_THREAD = 1, 2                # cudaStream_t
COUNT = 5000

nccl = ctypes.CDLL("libnccl.so.2")
cuda = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
nccl.ncclGetErrorString.restype = cuda.cudaGetErrorString.restype = ctypes.c_char_p
nccl.ncclGetLastError.restype = ctypes.c_char_p
P, Z = ctypes.c_void_p, ctypes.c_size_t


def must(code):
    """A call of NCCL's that has to succeed."""
    if code != SUCCESS:
        raise AssertionError(f"{nccl.ncclGetErrorString(code).decode()}: "
                             f"{nccl.ncclGetLastError(None).decode()}")


def runs(code):
    """The same of CUDA's."""
    if code != 0:
        raise AssertionError(cuda.cudaGetErrorString(code).decode())


def gpu(rank):
    """A rank's GPU. More ranks than GPUs need NCCL_MULTI_RANK_GPU_ENABLE=1."""
    return rank % torch.cuda.device_count()


def use(rank):
    torch.cuda.set_device(gpu(rank))


def equal(tensor, wanted):
    wrong = (tensor.cpu() != wanted).sum().item()
    if wrong:
        raise AssertionError(f"{wrong} of {tensor.numel()} are not {wanted}, such as "
                             f"{tensor.cpu()[tensor.cpu() != wanted][0].item()}")


class Ranks:
    """All ranks of this process."""

    def __init__(self, count):
        self.count = count
        self.comms = (P * count)()
        if count <= torch.cuda.device_count():
            must(nccl.ncclCommInitAll(self.comms, count, (ctypes.c_int * count)(*range(count))))
        else:  # ncclCommInitAll() takes no GPU twice
            self._join()
        self.graphs = []
        self.streams = [torch.cuda.Stream(gpu(d)) for d in range(count)]
        self.others = [torch.cuda.Stream(gpu(d)) for d in range(count)]

    def _join(self):
        made = UniqueId()
        must(nccl.ncclGetUniqueId(ctypes.byref(made)))
        must(nccl.ncclGroupStart())
        for r in range(self.count):
            use(r)
            place = ctypes.byref(self.comms, r * ctypes.sizeof(P))
            must(nccl.ncclCommInitRank(place, self.count, made, r))
        must(nccl.ncclGroupEnd())

    def buffers(self, value, count=COUNT):
        made = [torch.full((count,), float(value), device=gpu(d)) for d in range(self.count)]
        self.wait()
        return made

    def wait(self):
        for d in range(self.count):
            torch.cuda.synchronize(gpu(d))

    def group(self, call):
        """call(rank, communicator) of every rank; the group's result."""
        must(nccl.ncclGroupStart())
        for r in range(self.count):
            call(r, P(self.comms[r]))
        return nccl.ncclGroupEnd()

    def all_reduce(self, xs, streams=None, op=lambda r: SUM):
        streams = streams or self.handles()
        return self.group(lambda r, comm: nccl.ncclAllReduce(
            P(xs[r].data_ptr()), P(xs[r].data_ptr()), Z(xs[r].numel()), FLOAT, op(r), comm,
            P(streams[r])))

    def handles(self, streams=None):
        return [s.cuda_stream for s in streams or self.streams]

    def capture(self, body, mode=THREAD_LOCAL):
        """A graph for each rank of what body() puts on their streams."""
        for r, s in enumerate(self.streams):
            use(r)
            runs(cuda.cudaStreamBeginCapture(P(s.cuda_stream), mode))
        try:
            body()
        finally:
            graphs = [P() for _ in range(self.count)]
            for g, s in zip(graphs, self.streams):
                code = cuda.cudaStreamEndCapture(P(s.cuda_stream), ctypes.byref(g))
                if code != 0:
                    cuda.cudaGetLastError()
        execs = [P() for _ in range(self.count)]
        self.graphs.append((graphs, execs))
        for r in range(self.count):
            use(r)
            runs(cuda.cudaGraphInstantiate(ctypes.byref(execs[r]), graphs[r], ctypes.c_ulonglong(0)))
        return graphs, execs

    def destroy(self):
        must(self.group(lambda r, comm: nccl.ncclCommDestroy(comm)))

    def destroy_graphs(self):
        """ncclCommDestroy() of NCCL's waits until the last graph of a communicator is gone."""
        self.wait()
        for graphs, execs in self.graphs:
            for r in range(self.count):
                use(r)
                if execs[r]:
                    runs(cuda.cudaGraphExecDestroy(execs[r]))
                if graphs[r]:
                    runs(cuda.cudaGraphDestroy(graphs[r]))
        self.graphs.clear()

    def launch(self, execs, streams=None):
        for r, s in enumerate(self.handles(streams)):
            use(r)
            runs(cuda.cudaGraphLaunch(execs[r], P(s)))


class Buffer:
    """COUNT floats of any allocator on every rank: allocate(rank) gives an address, free() takes it."""

    def __init__(self, ranks, allocate, free):
        self.ranks, self.free = ranks, free
        self.places = []
        for r in range(ranks.count):
            use(r)
            self.places.append(allocate(r))

    def set(self, value):
        for r in range(len(self.places)):
            self.fill(r, 0, value)
        self.ranks.wait()

    def check(self, value):
        for r in range(len(self.places)):
            self.check_part(r, 0, value)

    def fill(self, rank, part, value):
        """COUNT floats of a rank from COUNT * `part` on."""
        source = torch.full((COUNT,), float(value))
        use(rank)
        runs(cuda.cudaMemcpy(P(self.places[rank].value + 4 * COUNT * part), P(source.data_ptr()),
                             Z(4 * COUNT), 4))

    def check_part(self, rank, part, value):
        got = torch.zeros(COUNT)
        use(rank)
        runs(cuda.cudaMemcpy(P(got.data_ptr()), P(self.places[rank].value + 4 * COUNT * part),
                             Z(4 * COUNT), 4))
        equal(got, float(value))

    def all_reduce(self):
        must(self.ranks.group(lambda r, comm: nccl.ncclAllReduce(
            self.places[r], self.places[r], Z(COUNT), FLOAT, SUM, comm,
            P(self.ranks.handles()[r]))))
        self.ranks.wait()

    def end(self):
        for r, place in enumerate(self.places):
            use(r)
            runs(self.free(place))


def by(function, *more, parts=1):
    """What allocates 4 * COUNT * `parts` bytes by a function of CUDA's or NCCL's."""
    def allocate(rank):
        place = P()
        runs(function(ctypes.byref(place), Z(4 * COUNT * parts), *more))
        return place
    return allocate
