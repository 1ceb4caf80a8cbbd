"""SGLang's engine with NCCL, with its own all-reduce, and with libnccl.so.2 of mscclc in front: times and tokens.

    python3 tests/gpu/frameworks/sglang_engine.py --front LIB/libnccl.so.2 [--model 8b] [--modes nccl custom front]

Needs GPUs, and SGLang 0.5.12: what sglang_load.py unpacks does. Each mode is an engine of its own (`Engine`, overlapped
schedule, CUDA graphs, Triton's attention, greedy); of the model only a configuration is real, and each rank draws its
weights. For each batch a line of JSON: µs a step = (median time of all tokens − that of one) / (tokens − 1), and ms to
the first token. Sums of two addends have the same bits in any library: batch 1 must give the same tokens in all modes.

`--one-gpu` puts all ranks on GPU 0 (modes nccl and front; tokens count, times do not): NCCL then takes them for nodes and
uses sockets. `--device cpu --ranks 1 --model tiny` tries this program without GPUs (SGLang's engine for processors)."""

import argparse
import ctypes
import hashlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import one_gpu  # noqa: E402
from counted_checks import Checks  # noqa: E402
from vllm_engine import draw, ended, expect, say, write_model  # noqa: E402

MODES = ("nccl", "custom", "front")
# No NVLink multicast: it can break the host.
ENVIRONMENT = {
    "NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1",
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "GLOO_SOCKET_IFNAME": "lo",
}  # fmt: skip
# Set where all ranks are on one GPU.
ONE_GPU = {
    **one_gpu.ENVIRONMENT, "NCCL_MULTI_RANK_GPU_ENABLE": "1", "SGLANG_NUMA_BIND_V2": "false",
}  # fmt: skip
MULTICAST = "nvls|symm_mem|mscclpp|mnnvl|flashinfer"
MODELS = {
    "tiny": {"num_hidden_layers": 2},
    "8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 8, "vocab_size": 128256},
    "70b": {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 16, "num_attention_heads": 64,
            "num_key_value_heads": 8, "vocab_size": 128256},
}  # fmt: skip


def draw_weights(model, *_):
    """Instead of SGLang's dummy weights."""
    import torch
    from sglang.srt.distributed import get_tensor_model_parallel_rank

    with torch.no_grad():
        draw(model, get_tensor_model_parallel_rank())


def about(scheduler, folder):
    """Writes which libnccl a rank calls and which are loaded, and whether SGLang's own all-reduce serves it."""
    from sglang.srt.distributed import get_tp_group

    # PyTorch may load its own beside one that is in front, and then calls the one in front.
    address = ctypes.cast(ctypes.CDLL("libnccl.so.2").ncclAllReduce, ctypes.c_void_p).value
    loaded, called = set(), None
    with open("/proc/self/maps") as maps:
        for place, *_, file in (line.split(maxsplit=5) for line in maps if "/libnccl" in line):
            low, high = (int(one, 16) for one in place.split("-"))
            loaded.add(file.strip())
            called = file.strip() if low <= address < high else called
    own = getattr(get_tp_group(), "ca_comm", None)
    with open(os.path.join(folder, f"rank{scheduler.tp_rank}"), "w") as file:
        json.dump({"calls": called, "loaded": sorted(loaded), "custom": own is not None and not own.disabled}, file)


def scheduler(*arguments):
    """A rank of SGLang, as its engine starts it."""
    from sglang.srt.managers import scheduler as module
    from sglang.srt.model_loader import loader

    if all(os.environ.get(name) == value for name, value in ONE_GPU.items()):
        server, ports, _, rank, *more = arguments
        arguments = server, ports, 0, rank, *more
        os.environ.update(one_gpu.node_of(rank))
    loader.initialize_dummy_weights = draw_weights
    module.Scheduler.about = about
    module.run_scheduler_process(*arguments)


def start_engine(options, folder):
    from sglang.srt.entrypoints.engine import Engine

    class Own(Engine):
        run_scheduler_process_func = staticmethod(scheduler)

    settings = dict(
        model_path=write_model(os.path.join(folder, "model"), 2, **MODELS[options.model]),
        skip_tokenizer_init=True, load_format="dummy", dtype="bfloat16", tp_size=options.ranks, device=options.device,
        context_length=2048, mem_fraction_static=0.5, disable_radix_cache=True, random_seed=0,
        max_running_requests=max(options.batches), cuda_graph_bs=sorted(options.batches),
        max_total_tokens=4096 + 2 * max(options.batches) * options.tokens,
        chunked_prefill_size=max(2048, max(options.batches) * options.tokens), disable_piecewise_cuda_graph=True,
        attention_backend="triton" if options.device == "cuda" else "torch_native", sampling_backend="pytorch",
        disable_custom_all_reduce=options.child != "custom", grammar_backend="none", log_level="info",
        enforce_disable_flashinfer_allreduce_fusion=True, **json.loads(options.more))  # fmt: skip
    assert not any(one.startswith("enable_") and settings[one] for one in settings if re.search(MULTICAST, one))
    return Own(**settings)


def measure(engine, batch, options):
    """Times of all tokens and of one, in turns after a warm-up, and what came out."""
    vocabulary = MODELS[options.model].get("vocab_size", 32000)
    chance = random.Random(batch)
    prompts = [[chance.randrange(3, vocabulary) for _ in range(options.tokens)] for _ in range(batch)]
    times, hashes = {options.tokens: [], 1: []}, set()
    for turn in range(options.repeat + 1):
        for count, spent in times.items():
            begin = time.perf_counter()
            made = engine.generate(
                input_ids=prompts, sampling_params={"temperature": 0, "max_new_tokens": count, "ignore_eos": True})
            if turn:
                spent.append(time.perf_counter() - begin)
            found = [list(one["output_ids"]) for one in made]
            assert [len(one) for one in found] == [count] * batch, "wrong count of tokens"
            if count > 1:
                hashes.add(hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16])
    whole, first = (statistics.median(times[count]) for count in (options.tokens, 1))
    return {
        "us_per_step": round((whole - first) / (options.tokens - 1) * 1e6, 1), "first_token_ms": round(first * 1e3, 2),
        "whole_ms": [round(one * 1e3, 1) for one in times[options.tokens]], "tokens": sorted(hashes),
    }  # fmt: skip


def child(options):
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        engine = start_engine(options, folder)
        say("start_s", round(time.perf_counter() - begin, 1))
        engine.collective_rpc("about", folder=folder)
        ranks = []
        for rank in range(options.ranks):
            with open(os.path.join(folder, f"rank{rank}")) as file:
                ranks.append(json.load(file))
        say("ranks", ranks)
        for batch in options.batches:
            say(f"batch {batch}", measure(engine, batch, options))
        engine.shutdown()


def run(mode, options):
    """{what: value} of an engine, and how it ended."""
    environment = {**os.environ, **ENVIRONMENT}
    if options.device == "cpu":
        environment["SGLANG_USE_CPU_ENGINE"] = "1"
    if options.one_gpu:
        environment.update(ONE_GPU)
    if mode == "front":
        environment["LD_PRELOAD"] = options.front
    with open(os.path.join(options.logs, f"sglang.{mode}"), "w+") as log:
        process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--child", mode, *sys.argv[1:]],
                                   stdout=log, stderr=log, env=environment, start_new_session=True)  # fmt: skip
        said, _, how = ended(process, log, time.monotonic() + options.seconds)
    return said, how


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=None)
    parser.add_argument("--front", type=os.path.realpath, default=None, help="our libnccl.so.2")
    parser.add_argument("--model", choices=list(MODELS), default="8b")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--tokens", type=int, default=128, help="of a prompt, and after it")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on GPU 0")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--more", default="{}", help="more arguments of the engine, as JSON")
    parser.add_argument("--logs", default=".", help="a folder for what engines print")
    parser.add_argument("--seconds", type=float, default=280, help="the most for an engine")
    parser.add_argument("--child", choices=MODES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options)
    options.modes = options.modes or [one for one in MODES if not (options.one_gpu and one == "custom")]
    if options.one_gpu and "custom" in options.modes:
        parser.error("mode custom needs a GPU a rank")
    if "front" in options.modes and not (options.front and os.path.isfile(options.front)):
        parser.error("mode front needs --front, a file")
    checks, tokens = Checks(0), {}
    for mode in options.modes:
        said, how = run(mode, options)
        print(json.dumps({"mode": mode, "model": options.model, "ended": how, **said}), flush=True)
        ranks = said.get("ranks", [])
        right = len(ranks) == options.ranks and all(
            one["custom"] == (mode == "custom") and (one["calls"] == options.front) == (mode == "front")
            for one in ranks)
        expect(checks, right, f"{mode}: starts, and its libraries serve it")
        done = [said.get(f"batch {batch}") for batch in options.batches]
        expect(checks, None not in done, f"{mode}: all batches")
        if "batch 1" in said:
            tokens[mode] = said["batch 1"]["tokens"]
    if options.ranks <= 2 and 1 in options.batches:
        seen = {one for each in tokens.values() for one in each}
        expect(checks, len(seen) == 1, f"batch 1: the same tokens, by {sorted(tokens)}")
    checks.end()


if __name__ == "__main__":
    main()
