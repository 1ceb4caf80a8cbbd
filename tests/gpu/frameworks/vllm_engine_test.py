"""vllm_engine.py with a fake vLLM: what it takes for right, and for wrong."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

FAKE = '''
import json, os, subprocess, sys
FAULT = os.environ.get("FAULT", "")

class SamplingParams:
    def __init__(self, max_tokens, **more):
        self.max_tokens = max_tokens

class LLM:
    def __init__(self, model, tensor_parallel_size, **more):
        assert json.load(open(os.path.join(model, "config.json")))["model_type"] == "llama"
        ranks_apart = os.environ.get("LOCAL_RANK") == "0" and int(os.environ["RANK"]) < tensor_parallel_size
        assert more["distributed_executor_backend"] == ("external_launcher" if ranks_apart else "mp")
        node = f"rank {os.environ['RANK']}" if ranks_apart else None  # else NCCL refuses ranks of one GPU
        assert os.environ.get("NCCL_HOSTID") == node
        assert (os.environ.get("NCCL_SOCKET_IFNAME") == "lo") == ranks_apart
        if FAULT == "start":
            raise RuntimeError("no start")
        # Each ends with this process.
        self.workers = [subprocess.Popen("cat", stdin=subprocess.PIPE) for _ in range(tensor_parallel_size)]
        self.slept = False

    def collective_rpc(self, name):
        mscclc = os.environ.get("VLLM_PLUGINS") is None and FAULT != "no plug-in"
        kind = "MscclcCommunicator" if mscclc else "CudaCommunicator"
        return [{"pid": one.pid, "communicator": kind} for one in self.workers] if name == "about" else None

    def generate(self, prompts, sampling, use_tqdm):
        for rank, one in enumerate(self.workers):
            if one.poll() is not None:
                if FAULT != "no name":
                    print(f"ERROR Worker proc VllmWorker-{rank} died unexpectedly", file=sys.stderr)
                raise RuntimeError("EngineDead")
        def tokens(ids):
            last = sum(ids) + (1 if FAULT == "sleep" and self.slept else 0)
            last += 1 if FAULT == "rank" and os.environ.get("RANK") == "1" else 0
            last += 1 if FAULT == "mode" and os.environ.get("VLLM_PLUGINS") is None else 0
            return [last + i for i in range(sampling.max_tokens)]
        class Made:
            def __init__(self, ids):
                self.outputs = [self]
                self.token_ids = tokens(ids)
        return [Made(one["prompt_token_ids"]) for one in prompts]

    def sleep(self, level):
        self.slept = True

    def wake_up(self):
        pass
'''


class VllmEngine(unittest.TestCase):
    def run_it(self, fault, *arguments):
        """(exit code, what it printed) with a fault of the fake."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "vllm.py"), "w") as file:
                file.write(FAKE)
            environment = {**os.environ, "PYTHONPATH": folder, "FAULT": fault}
            for name in ("VLLM_PLUGINS", "RANK", "LOCAL_RANK", "NCCL_HOSTID", "NCCL_SOCKET_IFNAME"):
                environment.pop(name, None)
            done = subprocess.run(
                [sys.executable, os.path.join(HERE, "vllm_engine.py"), "--logs", folder, *arguments],
                env=environment, capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def test_all_is_right(self):
        code, said = self.run_it("")
        self.assertEqual(code, 0, said)
        self.assertIn("ok   server, plugin: a killed worker", said)
        self.assertIn("ok   speculative: the same in all modes: tokens", said)
        self.assertNotIn("NOT ", said)

    def test_ranks_on_one_gpu(self):
        given = ("--only", "invariant", "--one-gpu")
        code, said = self.run_it("", *given)
        self.assertEqual(code, 0, said)
        self.assertIn("ok   invariant, nccl, rank 1: tokens among others", said)
        code, said = self.run_it("rank", *given)
        self.assertEqual(code, 1, said)
        self.assertIn("NOT  invariant: the same in all modes: tokens", said)
        code, said = self.run_it("", "--one-gpu")
        self.assertEqual(code, 2, said)
        self.assertIn("name other cases than server", said)

    def test_faults_are_found(self):
        for fault, line in {
            "start": "NOT  server, plugin: starts (None s)",
            "no plug-in": "NOT  server, plugin: starts",
            "sleep": "NOT  server, plugin: tokens after sleep",
            "no name": "NOT  server, plugin: a killed worker",
            "mode": "NOT  server: the same in all modes: tokens",
        }.items():
            with self.subTest(fault):
                code, said = self.run_it(fault, "--only", "server")
                self.assertEqual(code, 1, said)
                self.assertIn(line, said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
