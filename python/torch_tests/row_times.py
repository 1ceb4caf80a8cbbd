"""What AllReduce, residual and RMSNorm take on GPUs as one call, beside what does the same in several kernels, in one
run and in turns.

    python3 python/torch_tests/row_times.py [--ranks 2] [--hidden 4096 8192 …] [--tokens 1 6 32 …]
        [--program plans/rows/allreduce_norm_1shot.mscl B=6 T=384 --program … B=12 T=384 …] [--calls 50] [--rounds 5]
        [--contenders allreduce_norm plain …]

Rows of `--hidden` columns of bf16. Ours are the plans that the library picks for such rows (docs/fusion.md), and those of
each --program, which takes the parameters R and N, too: "program 0" is the first, "program 1" the second. By name:

allreduce_norm, allreduce_norm_sharded           residual and norm; sequence parallel
allreduce_norm_quantize, allreduce_norm_quantize_token   and e4m3 by a given scale, by a scale a row
allreduce_norm_quantize_token_sharded            the latter, by owner: e4m3 alone is gathered
plain, plain+norm   our AllReduce by name alone; and then one kernel that torch.compile makes
nccl, A1            NCCL's alone; and then that kernel
A2, A3              one_shot_all_reduce_out and two_shot_all_reduce_ of torch's symmetric memory, then a kernel of Triton
A4                  all of it by a kernel of Triton, one shot
FI                  FlashInfer's fused kernel (backend trtllm), one shot or two as it chooses, where it is installed

Each is captured --calls times in a CUDA graph. `us` has µs a call back to back, and between kernels, which write
its input: with them less what they take alone. The ranks are aligned on the GPUs before a graph begins; the slower
rank's time, the median of the rounds. Prints a line of JSON for each number of tokens; `over_plain` is what the best of
allreduce_norm and the program takes more than plain, `to_best` its time between kernels to the best of plain+norm, A1
to A4 and FI. What cannot run is in `failed`, with the reason of each rank that has one. All results are compared first: with
two ranks the residual stream bit for bit; and afterwards the timed graph's with those of as many eager calls.
Standard error has a line before each contender, and what fails and what is measured, at once. A call of ours may take
--patience seconds, anything else four times as long: then its rank says where it is, and ends.
REQUIRES: as many GPUs as ranks, in one node; libnvrtc or nvcc; MSCCLC_KERNELS=now.
`--device cpu` tries ours and the comparison on the host; its times say nothing.
"""

import argparse
import datetime
import faulthandler
import json
import math
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import mscclc

EPS = 1e-5
REPLAYS = 3  # that are compared
_KEPT = []  # workspaces: to let go of one takes all ranks
SCALE = 0.05  # of e4m3, where it is given
BY_NAME = ("allreduce_norm", "allreduce_norm_sharded", "allreduce_norm_quantize", "allreduce_norm_quantize_token",
           "allreduce_norm_quantize_token_sharded")  # fmt: skip
THEIRS = ("plain+norm", "A1", "A2", "A3", "A4", "FI")


def add_rmsnorm(x, residual, weight):
    """As vLLM defines it, and the row function add_rmsnorm rounds it."""
    stream = x + residual
    wide = stream.float()
    return stream, (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPS) * weight.float()).to(x.dtype)


def add_rmsnorm_into(x, residual, weight, stream, norm):
    """The same, to where it shall lie: nothing is allocated by a call."""
    for to, made in zip((stream, norm), add_rmsnorm(x, residual, weight)):
        to.copy_(made)


class Contender:
    """A call that is timed, where its input lies, what compares its results, and the tensors that have them. `changed`:
    what else calls read and write."""

    def __init__(self, call, input, check, results, changed=()):
        self.call, self.input, self.check, self.results = call, input, check, results
        self._before = [(one, one.clone()) for one in (input, *changed)]

    def put_back(self):
        """What it was made with; results of calls are gone."""
        for one in self.results:
            one.zero_()
        for one, before in self._before:
            one.copy_(before)


def _near(found, wanted, what, part=0.02):
    apart = (found.float() - wanted.float()).abs().max().item() if found.numel() else 0
    if not apart <= part * wanted.float().abs().max().item():
        raise AssertionError(f"{what}: {apart} apart")


def _same(found, wanted, what):
    if not torch.equal(found, wanted):
        raise AssertionError(f"{what} has other bits")


class Shape:
    """Some rows: the contenders, each on buffers of its own."""

    def __init__(self, ranks, comm, group, hidden, tokens):
        self.ranks, self.comm, self.group, self.hidden, self.tokens = ranks, comm, group, hidden, tokens
        self.device = ranks.device

        def made(seed, *shape):
            generator = torch.Generator().manual_seed(seed)
            return (torch.randn(*shape, generator=generator) * 0.5).to(torch.bfloat16).to(self.device)

        parts = [made(tokens * 100 + p, tokens, hidden) for p in range(ranks.size)]
        self.part = parts[ranks.rank]
        self.residual, self.weight = made(1, tokens, hidden), made(2, hidden)
        self.sum = sum((one.float() for one in parts[1:]), parts[0].float()).to(torch.bfloat16)
        self.stream, self.norm = add_rmsnorm(self.sum, self.residual, self.weight)
        self.block = 1 << (hidden - 1).bit_length()
        self._handles = []

    def own_rows(self, chunks):
        """Those that this rank has of a stream that is sharded: rows are cut into the first number of the contract's
        `chunks`, each of these into the next."""
        parts = chunks[0] if chunks[0] % self.ranks.size == 0 else math.prod(chunks)
        rows = [self.tokens // parts + (c < self.tokens % parts) for c in range(parts)]
        each = parts // self.ranks.size
        return slice(sum(rows[: self.ranks.rank * each]), sum(rows[: (self.ranks.rank + 1) * each]))

    def ours(self, plan, text):
        """A plan that is loaded."""
        plan_of = json.loads(text)["mscclc"]
        declared = {row[0]: row for row in plan_of["externals"]}
        here = slice(0, self.tokens)
        if declared["residual"][4] == "sharded":
            here = self.own_rows(plan_of["contract"]["chunks"])
        x, out = self.part.clone(), torch.empty_like(self.part)
        quantized = "scale" in declared and "q" not in declared
        if quantized:
            out = torch.empty(self.tokens, self.hidden, dtype=torch.uint8, device=self.device)
        residual = self.residual[here].clone()
        outside = {"residual": residual, "weight": self.weight, "eps": EPS}
        if "q" in declared:
            outside["q"] = torch.empty(self.tokens, self.hidden, dtype=torch.uint8, device=self.device)
        if "least" in declared:
            outside["least"] = 1e-10
            outside["scale"] = torch.empty(self.tokens, dtype=torch.float32, device=self.device)
        elif "scale" in declared:
            outside["scale"] = SCALE

        def call():
            plan.run(x, out, stream=self.ranks.stream_now(), dtype="bf16", externals=outside)

        def check():
            stream = out if "q" in declared else outside["residual"]
            same = _same if self.ranks.size == 2 else _near
            same(stream, self.stream[here], "residual")
            if "q" not in declared and not quantized:
                return _near(out, self.norm, "norm")
            scale = outside["scale"]
            found = (out if quantized else outside["q"]).view(torch.float8_e4m3fn).float()
            wide = found * (scale if scale is SCALE else scale[:, None])
            _near(wide, self.norm, "e4m3", 0.1)

        results = [one for name, one in outside.items() if name != "weight" and torch.is_tensor(one)]
        return Contender(call, x, check, [out, *results], [residual])

    def plain(self):
        x, out = self.part.clone(), torch.empty_like(self.part)
        call = lambda: self.comm.allreduce(x, out, stream=self.ranks.stream_now(), dtype="bf16")  # noqa: E731
        return Contender(call, x, lambda: _near(out, self.sum, "sum"), [out])

    def nccl(self):
        x = self.part.clone()
        return Contender(lambda: dist.all_reduce(x, group=self.group), x, lambda: _near(x, self.sum, "sum"), [x])

    def then_norm(self, sum_up, input, sum, kernel):
        """A sum, and then a kernel for the rest."""
        stream, norm = torch.empty_like(sum), torch.empty_like(sum)

        def call():
            sum_up()
            kernel(sum, stream, norm)

        return Contender(call, input, lambda: self.check_both(stream, norm), [stream, norm])

    def check_both(self, stream, norm):
        _near(stream, self.stream, "residual")
        _near(norm, self.norm, "norm")

    def by_inductor(self, sum, stream, norm):
        if not hasattr(self, "_kernel"):
            self._kernel = torch.compile(add_rmsnorm_into, dynamic=False)
        self._kernel(sum, self.residual, self.weight, stream, norm)

    def by_triton(self, sum, stream, norm):
        from row_baselines import add_norm

        add_norm[(self.tokens,)](sum, self.residual, self.weight, stream, norm, self.hidden, EPS,
                                 BLOCK=self.block, num_warps=8)  # fmt: skip

    def plain_then(self):
        x, out = self.part.clone(), torch.empty_like(self.part)
        call = lambda: self.comm.allreduce(x, out, stream=self.ranks.stream_now(), dtype="bf16")  # noqa: E731
        return self.then_norm(call, x, out, self.by_inductor)

    def a1(self):
        x = self.part.clone()
        return self.then_norm(lambda: dist.all_reduce(x, group=self.group), x, x, self.by_inductor)

    def symmetric(self):
        import torch.distributed._symmetric_memory as memory

        x = memory.empty(self.tokens, self.hidden, dtype=torch.bfloat16, device=self.device)
        handle = memory.rendezvous(x, self.group)
        self._handles.append(handle)  # without it the memory of other ranks is unmapped
        x.copy_(self.part)
        return x, handle

    def a2(self):
        x, out, name = self.symmetric()[0], torch.empty_like(self.part), self.group.group_name
        one_shot = torch.ops.symm_mem.one_shot_all_reduce_out
        return self.then_norm(lambda: one_shot(x, "sum", name, out), x, out, self.by_triton)

    def a3(self):
        x, name = self.symmetric()[0], self.group.group_name
        two_shots = torch.ops.symm_mem.two_shot_all_reduce_
        return self.then_norm(lambda: two_shots(x, "sum", name), x, x, self.by_triton)

    def a4(self):
        from row_baselines import one_shot

        x, handle = self.symmetric()
        addresses = lambda of: torch.tensor([int(one) for one in of], dtype=torch.int64, device=self.device)  # noqa: E731
        buffers, pads = addresses(handle.buffer_ptrs), addresses(handle.signal_pad_ptrs)
        buffers += x.data_ptr() - int(handle.buffer_ptrs[self.ranks.rank])  # it may lie inside its memory
        stream, norm = torch.empty_like(x), torch.empty_like(x)

        def call():
            one_shot[(min(self.tokens, 128),)](
                buffers, pads, self.ranks.rank, self.residual, self.weight, stream, norm, self.tokens, self.hidden,
                EPS, WORLD=self.ranks.size, BLOCK=self.block, num_warps=8,
            )  # fmt: skip

        return Contender(call, x, lambda: self.check_both(stream, norm), [stream, norm])

    def flashinfer(self):
        fused = flashinfer_fused(self.ranks, self.group, self.tokens, self.hidden)
        x, norm = self.part.clone(), torch.empty_like(self.part)
        residual = self.residual.clone()  # in place, as ours has it
        call = lambda: fused(x, residual, self.weight, residual, norm)  # noqa: E731
        return Contender(call, x, lambda: self.check_both(residual, norm), [residual, norm], [residual])


def flashinfer_fused(ranks, group, rows, columns):
    """FlashInfer's fused kernel, for (input, residual, weight, stream, norm) of up to so many rows."""
    from flashinfer import comm

    workspace = comm.create_allreduce_fusion_workspace(
        backend="trtllm", world_size=ranks.size, rank=ranks.rank, max_token_num=rows, hidden_dim=columns,
        dtype=torch.bfloat16, group=group,
    )  # fmt: skip
    _KEPT.append(workspace)
    return lambda x, residual, weight, stream, norm: comm.allreduce_fusion(
        x, workspace, comm.AllReduceFusionPattern.kARResidualRMSNorm, launch_with_pdl=True, residual_in=residual,
        residual_out=stream, norm_out=norm, rms_gamma=weight, rms_eps=EPS, fp32_acc=True,
    )  # fmt: skip


class Ranks:
    """This rank and the others; what is small goes by gloo."""

    def __init__(self, rank, given):
        self.rank, self.size, self.hang = rank, given.ranks, 4 * given.patience
        self.device = torch.device(given.device, *([rank] if given.device == "cuda" else []))

    def agreed(self, fine):
        found = torch.tensor([float(fine)])
        dist.all_reduce(found, dist.ReduceOp.MIN)
        return bool(found.item())

    def most(self, number):
        found = torch.tensor([number], dtype=torch.float64)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return found.item()

    def stream_now(self):
        return torch.cuda.current_stream().cuda_stream if self.device.type == "cuda" else None

    def synchronize(self, comm):
        torch.cuda.synchronize() if self.device.type == "cuda" else comm.synchronize()

    def say(self, text):
        """At once, of the first rank."""
        if self.rank == 0:
            print(text, file=sys.stderr, flush=True)

    def attempt(self, make, what):
        """What it gives, and why ranks have nothing: the reason of each. Where it hangs, the rank says so and ends."""
        why, made = "", None
        faulthandler.dump_traceback_later(self.hang, exit=True)
        try:
            made = make()
        except Exception as error:  # of whatever library
            why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            print(f"rank {self.rank}, {what}: {why}", file=sys.stderr, flush=True)
        reasons = [None] * self.size
        dist.all_gather_object(reasons, why)
        faulthandler.cancel_dump_traceback_later()
        return made, "; ".join(f"rank {rank}: {one}" for rank, one in enumerate(reasons) if one)

    def usable(self, align):
        """Whether all ranks still run something: an error of CUDA ends all that its process does, and a call that has
        waited for too long its communicator."""
        return not self.attempt(lambda: self.device.type == "cpu" or (align(), torch.cuda.synchronize()), "a call")[1]


def graph_of(ranks, call, calls, before=None):
    """What replays it."""
    def all_calls():
        for _ in range(calls):
            if before is not None:
                before()
            call()

    if ranks.device.type == "cpu":
        return all_calls
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        all_calls()

    def replay(_kept=(call, before)):  # a graph does not keep the memory that it reads and writes
        graph.replay()

    return replay


def timed(ranks, comm, replay, align, calls, what):
    """µs a call, of the slower rank; and why there are none."""
    def here():
        if ranks.device.type == "cpu":
            begin = time.perf_counter()
            replay()
            comm.synchronize()
            return (time.perf_counter() - begin) * 1e6 / calls
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(1_000_000)  # until the graph is queued, too
        align()
        begin.record()
        replay()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3 / calls

    dist.barrier()
    took, why = ranks.attempt(here, what)
    return (None, why) if why else (ranks.most(took), "")


def contenders_of(shape, loaded):
    found = {name: lambda plan=plan, text=text: shape.ours(plan, text) for name, (plan, text) in loaded.items()}
    found["plain"] = shape.plain
    if shape.device.type == "cuda":
        found.update({"plain+norm": shape.plain_then, "nccl": shape.nccl, "A1": shape.a1, "A2": shape.a2,
                      "A3": shape.a3, "A4": shape.a4, "FI": shape.flashinfer})  # fmt: skip
    return found


class Measurement:
    """All contenders with some rows: `us` of each, back to back and between kernels, and why others have none."""

    def __init__(self, ranks, shape, given, align, failed):
        self._ranks, self._shape, self._given, self._align = ranks, shape, given, align
        self._made, self._graphs, self._times = {}, {}, {}
        self.failed, self.lost = failed, False

    def run(self, loaded):
        """Until all are measured, or the GPUs do nothing more (`lost`)."""
        for name, make in contenders_of(self._shape, loaded).items():
            if self._given.contenders and name not in self._given.contenders:
                continue
            self._prepare(name, make)
        for turn in range(self._given.rounds + 1):
            for name in list(self._graphs)[:: 1 if turn % 2 == 0 else -1]:  # none is always the first
                self._time(name, turn)
        for name in list(self._graphs):
            self._attempt(name, "again", lambda name=name: self._repeat(name))

    def us(self):
        found = {}
        for name, rounds in self._times.items():
            if name not in self.failed and rounds:
                alone, between, empty = map(statistics.median, zip(*rounds))
                found[name] = [round(alone, 2), round(between - empty, 2)]
        return found

    def _what(self, name, phase):
        return f"{self._shape.hidden} columns, {self._shape.tokens} rows, {name}, {phase}"

    def _attempt(self, name, phase, make):
        """Its result, if all ranks have one."""
        if self.lost or name in self.failed:
            return None
        self._ranks.say(self._what(name, phase))
        made, why = self._ranks.attempt(make, self._what(name, phase))
        return None if self._fails(name, phase, why) else made

    def _fails(self, name, phase, why):
        if why:
            self.failed[name] = f"{phase}: {why}"
            self._graphs.pop(name, None)
            self.lost = not self._ranks.usable(self._align)
        return bool(why)

    def _prepare(self, name, make):
        def tried():
            made = make()
            made.call()
            self._ranks.synchronize(self._shape.comm)
            made.check()
            return made

        made = self._attempt(name, "first call", tried)
        if made is None:
            return
        self._made[name] = made
        graphs = self._attempt(name, "graphs", lambda: self._graphs_of(made))
        if graphs is not None:
            self._graphs[name], self._times[name] = graphs, []

    def _graphs_of(self, made):
        made.input.zero_()  # sums that replays repeat stay finite
        zeros = torch.zeros_like(made.input)
        write = lambda to=made.input, zeros=zeros: torch.mul(zeros, 1.0, out=to)  # noqa: E731
        calls = self._given.calls
        return [graph_of(self._ranks, made.call, calls), graph_of(self._ranks, made.call, calls, write),
                graph_of(self._ranks, write, calls)]  # fmt: skip

    def _time(self, name, turn):
        if self.lost:
            return
        times, phase = [], f"round {turn}"
        what = self._what(name, phase)
        for replay in self._graphs[name]:
            one, why = timed(self._ranks, self._shape.comm, replay, self._align, self._given.calls, what)
            if self._fails(name, phase, why):
                return
            times.append(one)
        self._ranks.say(f"{what}: {' '.join(f'{one:.2f}' for one in times)} µs")
        if turn > 0:
            self._times[name].append(times)

    def _repeat(self, name):
        """AssertionError: replays of the graph that was timed have other bits than as many eager calls."""
        made, wanted = self._made[name], None
        replay = self._graphs[name][0]
        for run in (lambda: [made.call() for _ in range(self._given.calls)], *[replay] * REPLAYS):
            made.put_back()
            run()
            self._ranks.synchronize(self._shape.comm)
            if wanted is None:
                wanted = [one.clone() for one in made.results]
            for found, one in zip(made.results, wanted):
                _same(found.view(torch.uint8), one.view(torch.uint8), "a replay of its graph")


def report(shape, us, failed, programs):
    line = {"hidden": shape.hidden, "tokens": shape.tokens, "bytes": shape.part.nbytes, "ranks": shape.ranks.size,
            "us": us, "programs": programs, "failed": failed}  # fmt: skip
    ours = [name for name in us if name == "allreduce_norm" or name.startswith("program")]
    theirs = [name for name in us if name in THEIRS]
    if ours and "plain" in us:
        best = min(ours, key=lambda name: us[name][1])
        line["over_plain"] = [round(us[best][i] - us["plain"][i], 2) for i in (0, 1)]
        if theirs:
            line["to_best"] = round(us[best][1] / min(us[name][1] for name in theirs), 3)
    print(json.dumps(line), flush=True)


def plans_for(ranks, comm, given, hidden, tokens, known):
    """What serves such rows, loaded and as text; what each was compiled of; and why others are none."""
    loaded, programs, failed = {}, {}, {}
    wanted = [(name, None) for name in BY_NAME]
    wanted += [(f"program {i}", some) for i, some in enumerate(given.program)]
    for name, some in wanted:
        if given.contenders and name not in given.contenders:
            continue
        if some is None:
            chosen = mscclc.choose_rows(name, ranks=ranks.size, columns=hidden, rows=tokens, dtype="bf16")
            key = " ".join([chosen.program, *(f"{k}={v}" for k, v in chosen.params.items())])
            most = min(chosen.most_rows, max(given.tokens))
            make = lambda name=name: mscclc.row_plan(  # noqa: E731
                name, ranks=ranks.size, columns=hidden, rows=tokens, dtype="bf16"
            )
        else:
            file, *rest = some
            defines = {"R": ranks.size, "N": hidden, **dict(one.split("=", 1) for one in rest)}
            key, most = " ".join([file, *(f"{k}={v}" for k, v in defines.items())]), max(given.tokens)
            make = lambda file=file, defines=defines: mscclc.compile(file, defines)  # noqa: E731
        if key not in known:
            def load(make=make, most=most):
                text = make().to_json()
                return comm.load(text, most * hidden * 2, "bf16"), text

            ranks.say(f"{name}, load: {key}")
            known[key] = ranks.attempt(load, f"{name}, load")
        made, why = known[key]
        programs[name] = key
        if why:
            failed[name] = f"load: {why}"
        else:
            loaded[name] = made
    return loaded, programs, failed


def set_up(rank, given, meeting):
    """The rank, its communicator, NCCL's group, and a call that aligns the ranks on the GPUs."""
    ranks = Ranks(rank, given)
    if given.device == "cuda":
        torch.cuda.set_device(rank)
    torch._dynamo.config.recompile_limit = 1000  # a kernel for each shape
    longest = datetime.timedelta(seconds=ranks.hang + given.patience)  # a rank that hangs says so before
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=given.ranks, timeout=longest)
    group = dist.new_group(backend="nccl", timeout=longest) if given.device == "cuda" else None
    ids = [mscclc.unique_id() if rank == 0 else None]
    dist.broadcast_object_list(ids)
    place = rank if given.device == "cuda" else None
    comm = mscclc.Communicator(given.ranks, ids[0], rank, device=place, timeout=given.patience)
    small = torch.zeros(64, dtype=torch.bfloat16, device=ranks.device)
    align = lambda: comm.allreduce(small, stream=torch.cuda.current_stream().cuda_stream, dtype="bf16")  # noqa: E731
    return ranks, comm, group, align


def end(lost=False):
    """Of a rank."""
    dist.barrier()
    sys.stdout.flush()
    os._exit(1 if lost else 0)  # graphs and symmetric memory take long to let go of


def run_ranks(parser, rank_main):
    """Reads the options, and starts so many ranks."""
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--patience", type=float, default=20, help="seconds that a call of ours may wait")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(rank_main, (given, os.path.join(folder, "meeting")), nprocs=given.ranks)


def rank_main(rank, given, meeting):
    ranks, comm, group, align = set_up(rank, given, meeting)
    if rank == 0:
        name = torch.cuda.get_device_name() if given.device == "cuda" else "the host: no times"
        print(json.dumps({"device": name, "torch": torch.__version__}), flush=True)
    for hidden in given.hidden:
        known = {}
        for tokens in given.tokens:
            loaded, programs, failed = plans_for(ranks, comm, given, hidden, tokens, known)
            shape = Shape(ranks, comm, group, hidden, tokens)
            found = Measurement(ranks, shape, given, align, failed)
            found.run(loaded)
            if rank == 0:
                report(shape, found.us(), failed, programs)
            if found.lost:
                end(lost=True)
    end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, nargs="+", default=[4096])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 6, 32, 128, 512, 2048])
    parser.add_argument("--program", nargs="+", action="append", default=[],
                        help="one more, of plans/rows say, and its parameters without R and N: B=16; may be repeated")  # fmt: skip
    parser.add_argument("--contenders", nargs="+", help="these alone (all)")
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    run_ranks(parser, rank_main)


if __name__ == "__main__":
    main()
