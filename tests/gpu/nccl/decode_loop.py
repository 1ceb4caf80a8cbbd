"""A token of a tensor-parallel decoder: a library of NCCL's interface in front of NCCL, and NCCL alone.

    python3 tests/gpu/nccl/decode_loop.py --library /opt/mscclc/libnccl.so.2 [--ranks 2] [--rounds 2]
        [--models 8b,70b,405b] [--batches 1,8,64] [--context 1024] [--out DIR]

Decoder blocks with the shapes of Llama 3 (8B, 70B, 405B), split over the GPUs as Megatron does: grouped
attention over a cache of `--context` tokens, an MLP, and an all-reduce of batch x hidden after each
of the two. bf16, random weights, every block with its own; rotary embedding and vocabulary are left
out. A token is one CUDA graph, and its output is the next token's input.

Runs itself in turns with the library in LD_PRELOAD (MSCCLC_REQUIRE_PLAN=1: no call may fall back)
and without it. Prints for each model and batch the median time a token of both, the ratio, and the
time without all-reduces. The first token's output must be the same with both: a sum of two has one
order; on more GPUs it may differ in rounding. Exits with 1 if it is not, or if a run fails.
"""
import argparse
import ctypes
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HEAD = 128
MODELS = {  # hidden, blocks, heads, heads of keys and values, width of the MLP
    "tiny": (1024, 2, 8, 8, 2048),
    "8b": (4096, 32, 32, 8, 14336),
    "70b": (8192, 80, 64, 8, 28672),
    "405b": (16384, 126, 128, 8, 53248),
}


class Decoder:
    """One rank's part of a model, for one batch."""

    def __init__(self, torch, name, ranks, rank):
        self.torch = torch
        hidden, blocks, heads, kv_heads, width = MODELS[name]
        self.hidden, self.heads, self.kv_heads = hidden, heads // ranks, kv_heads // ranks
        self.width = width // ranks
        rows = (self.heads + 2 * self.kv_heads) * HEAD
        shapes = [(rows, hidden), (hidden, self.heads * HEAD), (2 * self.width, hidden),
                  (hidden, self.width)]
        torch.manual_seed(100 + rank)
        self.blocks = [[self.new(shape).normal_(0, shape[1] ** -0.5) for shape in shapes]
                       for _ in range(blocks)]

    def new(self, shape):
        return self.torch.empty(shape, dtype=self.torch.bfloat16, device="cuda")

    def new_cache(self, batch, context):
        """Keys and values of each block. Equal heads of all ranks hold other values."""
        shape = (2, batch, self.kv_heads, context, HEAD)
        self.torch.manual_seed(7)
        return [self.new(shape).normal_() for _ in self.blocks]

    def linear(self, x, weights):
        return self.torch.nn.functional.linear(x, weights)

    def attention(self, x, weights, cache):
        qkv = self.linear(x, weights[0])
        batch, groups = x.shape[0], self.heads // self.kv_heads
        q, k, v = qkv.split([n * HEAD for n in (self.heads, self.kv_heads, self.kv_heads)], dim=1)
        cache[0, :, :, -1] = k.reshape(batch, self.kv_heads, HEAD)
        cache[1, :, :, -1] = v.reshape(batch, self.kv_heads, HEAD)
        # The heads that share keys and values stand where several tokens would.
        q = q.reshape(batch, self.kv_heads, groups, HEAD)
        out = self.torch.nn.functional.scaled_dot_product_attention(q, cache[0], cache[1])
        return self.linear(out.reshape(batch, self.heads * HEAD), weights[1])

    def mlp(self, x, weights):
        gate, up = self.linear(x, weights[2]).split(self.width, dim=1)
        return self.linear(self.torch.nn.functional.silu(gate) * up, weights[3])

    def token(self, x, caches, all_reduce):
        """The hidden state after all blocks."""
        norm = self.torch.nn.functional.rms_norm
        for weights, cache in zip(self.blocks, caches):
            part = self.attention(norm(x, (self.hidden,)), weights, cache)
            all_reduce(part)
            x = x + part
            part = self.mlp(norm(x, (self.hidden,)), weights)
            all_reduce(part)
            x = x + part
        return norm(x, (self.hidden,))


def measure(torch, decoder, batch, context, all_reduce):
    """(median seconds a token, the first token's output)"""
    torch.manual_seed(11)
    start = torch.randn(batch, decoder.hidden, device="cuda").to(torch.bfloat16)
    caches = decoder.new_cache(batch, context)
    x = start.clone()
    side = torch.cuda.Stream()  # torch's own advice: once before the capture
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        decoder.token(x, caches, all_reduce)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(decoder.token(x, caches, all_reduce))
    x.copy_(start)
    graph.replay()
    torch.cuda.synchronize()
    first = x.float().cpu()
    for _ in range(10):
        graph.replay()
    torch.cuda.synchronize()
    tokens, chunks = 10, []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(tokens):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        chunks.append(begin.elapsed_time(end) * 1e-3 / tokens)
    del graph, caches
    torch.cuda.empty_cache()
    return statistics.median(chunks), first


def run_rank(options):
    """One rank of one run; rank 0 writes what it found to options.result."""
    import torch
    import torch.distributed as dist
    rank = options.rank
    in_front = hasattr(ctypes.CDLL("libnccl.so.2"), "mscclc_nccl_front")
    if in_front != options.in_front:
        sys.exit(f"rank {rank}: {'another library' if options.in_front else 'mscclc'} is in front")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{options.port}", rank=rank,
                            world_size=options.ranks, device_id=torch.device("cuda", rank))
    found = {}
    with torch.no_grad():
        for model in options.models:
            decoder = Decoder(torch, model, options.ranks, rank)
            for batch in options.batches:
                seconds, first = measure(torch, decoder, batch, options.context, dist.all_reduce)
                alone, _ = measure(torch, decoder, batch, options.context, lambda part: None)
                if not bool(torch.isfinite(first).all()):
                    sys.exit(f"rank {rank}: {model}, batch {batch}: the output is not finite")
                found[f"{model} {batch}"] = {"seconds": seconds, "alone": alone,
                                             "first": first.flatten()[:4096].tolist()}
            del decoder
            torch.cuda.empty_cache()
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        with open(options.result, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(0),
                       "nccl": ".".join(map(str, torch.cuda.nccl.version())), "found": found},
                      file)


def wait_for(processes, until):
    """Their exit codes. If one fails, the others get 15 seconds; at the time `until` all end."""
    failed = False
    while any(process.poll() is None for process in processes) and time.monotonic() < until:
        if not failed and any(process.poll() for process in processes):
            failed, until = True, min(until, time.monotonic() + 15)
        time.sleep(0.1)
    for process in processes:
        if process.poll() is None:
            process.kill()
    return [process.wait() for process in processes]


def run(options, in_front, folder, name):
    """All ranks of one run, as processes. What rank 0 found; None: the run failed."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    environment = dict(os.environ)
    if in_front:
        environment.update(LD_PRELOAD=os.path.abspath(options.library), MSCCLC_REQUIRE_PLAN="1")
    result = os.path.join(folder, f"{name}.json")
    command = [sys.executable, os.path.abspath(__file__), "--result", result, "--port", str(port),
               "--ranks", str(options.ranks), "--models", ",".join(options.models),
               "--batches", ",".join(map(str, options.batches)),
               "--context", str(options.context)] + (["--in-front"] if in_front else [])
    begin = time.monotonic()
    ranks = []
    for rank in range(options.ranks):
        with open(os.path.join(folder, f"{name}-{rank}.log"), "wb") as log:
            ranks.append(subprocess.Popen(command + ["--rank", str(rank)], env=environment,
                                          stdout=log, stderr=subprocess.STDOUT))
    codes = wait_for(ranks, begin + options.limit)
    print(f"# {name}: {time.monotonic() - begin:.0f} s", flush=True)
    if any(codes):
        print(f"{name}: the ranks ended with {codes}; their output is in {folder}")
        return None
    with open(result, encoding="utf-8") as file:
        return json.load(file)


def distance(a, b):
    """The greatest difference of two outputs, of the greatest value."""
    return max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, b))


def report(options, ours, nccl):
    """Prints the table. False: outputs differ."""
    print(f"# PyTorch {ours[0]['torch']}, NCCL {ours[0]['nccl']}, {options.ranks} x "
          f"{ours[0]['gpu']}, bf16, {options.context} tokens of context, "
          f"{options.rounds} runs of each; us a token")
    print(f"{'model':>6} {'batch':>5} {'all-reduce':>10} {'ours':>9} {'NCCL':>9} {'NCCL/ours':>9} "
          f"{'without':>9}  output")
    good = True
    for model in options.models:
        for batch in options.batches:
            key = f"{model} {batch}"
            of = lambda runs, what: statistics.median(r["found"][key][what] for r in runs)
            off = max(distance(a["found"][key]["first"], b["found"][key]["first"])
                      for a in ours for b in nccl)
            # Two numbers have one sum; sums of more may be rounded in another order.
            same = off == 0 if options.ranks == 2 else off < 0.05
            good = good and same
            a, b = of(ours, "seconds"), of(nccl, "seconds")
            alone = of(ours + nccl, "alone")
            print(f"{model:>6} {batch:>5} {2 * batch * MODELS[model][0]:>10} {1e6 * a:>9.1f} "
                  f"{1e6 * b:>9.1f} {b / a:>9.3f} {1e6 * alone:>9.1f}  "
                  f"{'the same' if off == 0 else f'differs by {off:.2g} of the greatest'}"
                  f"{'' if same else ' WRONG'}")
    return good


def numbers(text):
    return [int(word) for word in text.split(",")]


def models(text):
    names = text.split(",")
    for name in names:
        if name not in MODELS:
            raise argparse.ArgumentTypeError(f"there is no model {name!r}, only {', '.join(MODELS)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--models", type=models, default=["8b", "70b"])
    parser.add_argument("--batches", type=numbers, default=[1, 8, 64])
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=int, default=150, help="seconds that a run may take")
    parser.add_argument("--out", help="where logs and results go; default: a new folder")
    # Of the processes that this one starts:
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--result", help=argparse.SUPPRESS)
    parser.add_argument("--in-front", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        run_rank(options)
        return 0
    if options.library is None or not os.path.exists(options.library):
        parser.error(f"--library: {options.library!r} is no file")
    folder = options.out or tempfile.mkdtemp(prefix="decode-")
    os.makedirs(folder, exist_ok=True)
    ours, nccl = [], []
    for turn in range(options.rounds):
        ours.append(run(options, True, folder, f"ours-{turn}"))
        nccl.append(run(options, False, folder, f"nccl-{turn}"))
        if ours[-1] is None or nccl[-1] is None:
            return 1
    return 0 if report(options, ours, nccl) else 1


if __name__ == "__main__":
    sys.exit(main())
