"""Hugging Face's libraries as they are installed, on a GPU a rank: training with accelerate's FSDP2, and
generation with transformers' tensor parallelism. NCCL alone and mscclc's libnccl.so.2 in front take turns:

    python3 tests/gpu/frameworks/hugging_face_times.py --library bazel-bin/runtime/doors/nccl/libnccl.so.2

A line of JSON a case: the median time with each, by whole runs, their ratio, and whether the losses, or the
tokens, are the same. MSCCLC_… variables reach the runs, and so does NCCL_DEBUG."""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time

MARK = "RESULT "


def sha(values):
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]


def config(layers, hidden):
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=hidden, intermediate_size=hidden * 11 // 4, num_hidden_layers=layers,
        num_attention_heads=hidden // 128, num_key_value_heads=max(4, hidden // 512), vocab_size=32000)


def timed(steps, warm, step):
    """Milliseconds of each step after the first ones, and what each returned."""
    import torch

    times, results = [], []
    for number in range(warm + steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        results.append(step(number))
        torch.cuda.synchronize()
        if number >= warm:
            times.append((time.perf_counter() - begin) * 1e3)
    return times, results


def fsdp2(steps):
    import torch
    from accelerate import Accelerator, FullyShardedDataParallelPlugin
    from transformers import LlamaForCausalLM

    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2, reshard_after_forward=True, auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=["LlamaDecoderLayer"])
    accelerator = Accelerator(mixed_precision="bf16", fsdp_plugin=plugin)
    torch.manual_seed(0)
    model = LlamaForCausalLM(config(layers=12, hidden=2048))
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-4))
    draw = torch.Generator().manual_seed(accelerator.process_index)
    batches = [torch.randint(32000, (2, 1024), generator=draw).to(accelerator.device) for _ in range(4)]

    def step(number):
        batch = batches[number % len(batches)]
        loss = model(input_ids=batch, labels=batch).loss
        accelerator.backward(loss)
        norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return [loss.item(), float(norm)]

    return timed(steps, 5, step)


def tensor_parallel(steps):
    import tempfile

    import torch
    from transformers import AutoModelForCausalLM, LlamaForCausalLM

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    if rank == 0:
        torch.manual_seed(0)
        LlamaForCausalLM(config(layers=8, hidden=4096)).to(torch.bfloat16).save_pretrained(folder[0])
    torch.distributed.broadcast_object_list(folder)
    model = AutoModelForCausalLM.from_pretrained(folder[0], tp_plan="auto", dtype=torch.bfloat16)
    tokens = torch.randint(32000, (1, 32), generator=torch.Generator().manual_seed(1)).cuda()
    made = 64

    def step(_):
        with torch.inference_mode():
            return model.generate(tokens, max_new_tokens=made, min_new_tokens=made, do_sample=False).tolist()

    times, results = timed(steps, 2, step)
    return [one / made for one in times], results


CASES = {"fsdp2": (fsdp2, "ms a step"), "tensor_parallel": (tensor_parallel, "ms a token")}


def one_run(case, library, args):
    """The median, and what came out, of one run with or without a library in front. Throws RuntimeError."""
    env = dict(os.environ, NCCL_NVLS_ENABLE="0", OMP_NUM_THREADS="4")
    if library:
        env["LD_PRELOAD"] = library
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(args.ranks), "--master-port",
        str(args.port), __file__, "--rank-of", case, "--steps", str(args.steps)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=args.limit, check=False)
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            return json.loads(line[len(MARK):])
    raise RuntimeError(f"{case}: {(done.stderr or done.stdout)[-1500:]}")


def compare(case, args):
    found = {"nccl": [], "mscclc": []}
    for _ in range(args.rounds):
        for name, library in (("nccl", ""), ("mscclc", args.library)):
            found[name].append(one_run(case, library, args))
    middle = {name: statistics.median(one["median"] for one in runs) for name, runs in found.items()}
    results = {name: sorted({one["result"] for one in runs}) for name, runs in found.items()}
    print(json.dumps({
        "case": case, "unit": CASES[case][1], "ranks": args.ranks,
        **{name: [round(one["median"], 2) for one in runs] for name, runs in found.items()},
        "ratio": round(middle["mscclc"] / middle["nccl"], 3),
        "same": results["nccl"] == results["mscclc"], "results": results}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="mscclc's libnccl.so.2")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20, help="that are timed in each run")
    parser.add_argument("--rounds", type=int, default=3, help="runs with each library, in turn")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--limit", type=int, default=120, help="seconds of a run")
    parser.add_argument("--port", type=int, default=29511)
    parser.add_argument("--rank-of", choices=CASES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank_of:
        times, results = CASES[args.rank_of][0](args.steps)
        if os.environ["RANK"] == "0":
            print(MARK + json.dumps({"median": statistics.median(times), "result": sha(results)}), flush=True)
        return
    if not args.library:
        parser.error("--library is needed")
    for case in args.cases:
        try:
            compare(case, args)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(json.dumps({"case": case, "error": str(error)[-1500:]}), flush=True)


if __name__ == "__main__":
    main()
