"""vLLM's engine with mscclc's plug-in and with NCCL alone: what a server does besides decoding.

    python3 tests/gpu/frameworks/vllm_engine.py [--ranks 2] [--only NAMES] [--modes plugin nccl]

Needs GPUs, vLLM, and mscclc's wheel, whose plug-in vLLM finds. The models are small, and made here: a configuration,
and weights that each worker draws. Sums of two addends have the same bits in any library, so two ranks must give the
same tokens in all modes; of more ranks that is not asked. Cases, each an engine with graphs and torch.compile:

    server       a long prompt in chunks; sleep and wake; then a worker is killed
    speculative  a small draft model
    invariant    VLLM_BATCH_INVARIANT=1: a prompt alone, and among others

`--one-gpu` puts all ranks on GPU 0, each an engine that vLLM's external launcher takes for a rank, so not for case
server; NCCL then takes them for nodes, and uses sockets. Prints a line for each check; the last line counts."""

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import one_gpu  # noqa: E402
from counted_checks import Checks  # noqa: E402

MARK = "ENGINE "
VOCABULARY = 32000
MORE = {
    "server": {"enable_sleep_mode": True, "max_num_batched_tokens": 256, "enable_chunked_prefill": True},
    "speculative": {},
    "invariant": {"attention_config": {"backend": "FLASH_ATTN"}},
}
ENVIRONMENT = {
    "VLLM_ALLREDUCE_USE_FLASHINFER": "0", "VLLM_ALLREDUCE_USE_SYMM_MEM": "0", "VLLM_USE_NCCL_SYMM_MEM": "0",
    "VLLM_USE_FLASHINFER_SAMPLER": "0", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn", "VLLM_HOST_IP": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo",
}  # fmt: skip

ONE_GPU = {
    **one_gpu.ENVIRONMENT, "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}  # fmt: skip


def write_model(folder, layers, **other):
    """A Llama without weights, of 1024 columns unless `other` says otherwise."""
    os.makedirs(folder)
    made = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 1024,
        "intermediate_size": 2816, "num_hidden_layers": layers, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 128, "vocab_size": VOCABULARY, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1,
        "eos_token_id": 2, **other,
    }  # fmt: skip
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(made, file)
    return folder


def draw(model, rank):
    """Weights: norms are 1, all else is drawn, another draw on each rank, as sums over ranks matter."""
    import torch

    for place, (name, value) in enumerate(model.named_parameters()):
        if "norm" in name:
            value.fill_(1)
            continue
        generator = torch.Generator(device=value.device)
        value.normal_(0, 0.02, generator=generator.manual_seed(1000 * rank + place))


class Worker:
    """What the checks call in each worker of vLLM."""

    def draw_weights(self):
        import torch

        with torch.inference_mode():
            draw(self.model_runner.get_model(), self.rank)

    def about(self):
        """The process, and who makes the collectives of its group."""
        from vllm.distributed.parallel_state import get_tp_group

        return {"pid": os.getpid(), "communicator": type(get_tp_group().device_communicator).__name__}


def say(check, value):
    print(MARK + json.dumps([check, value]), flush=True)


def prompt(seed, length):
    chance = random.Random(seed)
    return {"prompt_token_ids": [chance.randrange(3, VOCABULARY) for _ in range(length)]}


class Engine:
    """vLLM's engine for a case."""

    def __init__(self, case, folder, ranks):
        from vllm import LLM, SamplingParams

        more = dict(MORE[case])
        if case == "speculative":
            draft = write_model(os.path.join(folder, "draft"), 1)
            more["speculative_config"] = {"model": draft, "method": "draft_model", "num_speculative_tokens": 3}
        backend = "mp"
        if "RANK" in os.environ:
            # Each of the ranks would take the others' memory for its own.
            backend, more["kv_cache_memory_bytes"] = "external_launcher", 2 << 30
        self._sampling = SamplingParams(temperature=0.0, max_tokens=32, ignore_eos=True, detokenize=False)
        begin = time.perf_counter()
        self.llm = LLM(
            write_model(os.path.join(folder, "model"), 4), skip_tokenizer_init=True, load_format="dummy",
            dtype="bfloat16", tensor_parallel_size=ranks, distributed_executor_backend=backend, max_model_len=2048,
            gpu_memory_utilization=0.4, enable_prefix_caching=False, seed=0, max_num_seqs=16,
            disable_custom_all_reduce=True, worker_extension_cls="vllm_engine.Worker",
            compilation_config={"cudagraph_capture_sizes": [1, 2, 4, 8, 16]}, **more)  # fmt: skip
        say("start", round(time.perf_counter() - begin, 1))
        self.llm.collective_rpc("draw_weights")
        self.workers = self.llm.collective_rpc("about")
        say("communicators", sorted({one["communicator"] for one in self.workers}))

    def generate(self, *prompts):
        """The tokens that follow each prompt."""
        made = self.llm.generate(list(prompts), self._sampling, use_tqdm=False)
        return [list(one.outputs[0].token_ids) for one in made]


def run_server(engine):
    few = [prompt(seed, 20) for seed in range(8)]
    say("tokens", engine.generate(few[0]))
    say("tokens of a prompt in chunks", engine.generate(prompt(100, 1000)))
    say("tokens of many", sorted(map(len, engine.generate(*few, prompt(101, 700)))))
    engine.llm.sleep(level=1)
    engine.llm.wake_up()
    say("tokens after sleep", engine.generate(few[0]))
    killed = engine.workers[1]["pid"]
    os.kill(killed, signal.SIGKILL)
    begin = time.perf_counter()
    error = "none"
    try:
        while time.perf_counter() - begin < 60:
            engine.generate(few[0])
    except Exception as one:  # vLLM's are of several classes
        error = f"{type(one).__name__}: {one}"
    say("error", error)
    say("seconds to the error", round(time.perf_counter() - begin, 1))


def run_speculative(engine):
    say("tokens", engine.generate(prompt(0, 20)))
    say("tokens again", engine.generate(prompt(0, 20)))
    say("tokens of many", sorted(map(len, engine.generate(*(prompt(seed, 20) for seed in range(8))))))


def run_invariant(engine):
    alone = engine.generate(prompt(0, 20))
    say("tokens", alone)
    among = engine.generate(*(prompt(seed, 20 + 7 * seed) for seed in range(12)))
    say("tokens among others", among[:1])


def child(case, ranks):
    with tempfile.TemporaryDirectory() as folder:
        {"server": run_server, "speculative": run_speculative, "invariant": run_invariant}[case](
            Engine(case, folder, ranks))  # fmt: skip


def start(case, mode, options):
    """The processes of an engine, each with its log: one, or a process a rank."""
    environment = {**os.environ, **ENVIRONMENT}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, os.environ.get("PYTHONPATH")]))
    if mode == "nccl":
        environment["VLLM_PLUGINS"] = ""
    if case == "invariant":
        environment["VLLM_BATCH_INVARIANT"] = "1"
    command = [sys.executable, os.path.abspath(__file__), "--child", case, "--ranks", str(options.ranks)]

    def process(name, **more):
        log = open(os.path.join(options.logs, name), "w+")
        return subprocess.Popen(
            command, stdout=log, stderr=log, env={**environment, **more}, start_new_session=True), log  # fmt: skip

    if not options.one_gpu:
        return [process(f"{case}.{mode}")]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    return [process(f"{case}.{mode}.{rank}", **ONE_GPU, RANK=str(rank), WORLD_SIZE=str(options.ranks),
                    MASTER_PORT=port, **one_gpu.node_of(rank)) for rank in range(options.ranks)]  # fmt: skip


def ended(process, log, deadline):
    """{check: value} that it said, its whole log, and how it ended; what it left is killed."""
    try:
        how = f"status {process.wait(max(1, deadline - time.monotonic()))}"
    except subprocess.TimeoutExpired:
        how = "not in time"
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    log.seek(0)
    text = log.read()
    return dict(json.loads(line[len(MARK):]) for line in text.splitlines() if line.startswith(MARK)), text, how


def expect(checks, right, name):
    """Counts a check, and prints it."""

    def body():
        if not right:
            raise AssertionError(name)

    print(("ok   " if right else "NOT  ") + name, flush=True)
    checks(name, body)


def check_one(case, mode, who, said, log, how, checks):
    """What an engine must have said by itself."""
    name = f"{case}, {who}"
    served = [one for one in said.get("communicators", []) if one.startswith("Mscclc")]
    expect(checks, bool(served) == (mode == "plugin") and "start" in said, f"{name}: starts ({said.get('start')} s), "
                 f"by {said.get('communicators')}, ended with {how}")  # fmt: skip
    for other in ("tokens after sleep", "tokens again", "tokens among others"):
        if other in said:
            expect(checks, said[other] == said["tokens"], f"{name}: {other}")
    if case == "server":
        expect(checks, said.get("tokens of many") == [32] * 9, f"{name}: a long prompt beside others")
        error, names = said.get("error", "none"), re.search(r"Worker proc \S+ died", log)
        expect(checks, error != "none" and names is not None, f"{name}: a killed worker: "
                     f"{said.get('seconds to the error')} s, {error[:120]!r}; {names and names[0]}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(MORE), default=list(MORE))
    parser.add_argument("--modes", nargs="+", choices=("plugin", "nccl"), default=["plugin", "nccl"])
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on GPU 0")
    parser.add_argument("--logs", default=".", help="a folder for what engines print")
    parser.add_argument("--seconds", type=float, default=280, help="the most for the engines of a case")
    parser.add_argument("--child", choices=list(MORE), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.ranks)
    if options.one_gpu and "server" in options.only:
        parser.error("--one-gpu: name other cases than server by --only")
    checks = Checks(0)
    for case in options.only:
        deadline = time.monotonic() + options.seconds
        started = {mode: start(case, mode, options) for mode in options.modes}
        said = {}
        for mode, processes in started.items():
            for rank, (process, log) in enumerate(processes):
                name = f"{mode}, rank {rank}" if options.one_gpu else mode
                said[name], text, how = ended(process, log, deadline)
                check_one(case, mode, name, said[name], text, how, checks)
        first = next(iter(said.values()))
        for what in [] if options.ranks > 2 else [one for one in first if one.startswith("tokens")]:
            both = [one.get(what) for one in said.values()]
            expect(checks, both.count(both[0]) == len(both), f"{case}: the same in all modes: {what}")
    checks.end()


if __name__ == "__main__":
    main()
