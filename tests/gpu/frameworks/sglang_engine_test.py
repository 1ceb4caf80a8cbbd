"""sglang_engine.py with a fake SGLang: what it takes for right, and for wrong; and what sglang_load.py cuts."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import sglang_load  # noqa: E402

FAKE = '''
import json, os, sys
FAULT, FRONT = os.environ.get("FAULT", ""), os.environ.get("LD_PRELOAD")

class Engine:
    def __init__(self, model_path, disable_custom_all_reduce, tp_size, **more):
        assert json.load(open(os.path.join(model_path, "config.json")))["num_hidden_layers"] == 32
        assert os.environ["NCCL_NVLS_ENABLE"] == "0"
        assert (os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE") == "1") == ("--one-gpu" in sys.argv)
        assert type(self).run_scheduler_process_func.__name__ == "scheduler"
        if FAULT == "start":
            raise RuntimeError("no start")
        self.custom, self.ranks, self.calls = not disable_custom_all_reduce, tp_size, 0

    def collective_rpc(self, name, folder):
        for rank in range(self.ranks):
            library = FRONT if FRONT and FAULT != "library" else "/usr/lib/libnccl.so.2"
            with open(os.path.join(folder, f"rank{rank}"), "w") as file:
                json.dump({"calls": library, "custom": self.custom and FAULT != "custom"}, file)

    def generate(self, input_ids, sampling_params):
        self.calls += 1
        last = 1 if FAULT == "mode" and FRONT else self.calls if FAULT == "repeat" else 0
        count = sampling_params["max_new_tokens"] - (FAULT == "count")
        return [{"output_ids": [sum(ids) + last + i for i in range(count)]} for ids in input_ids]

    def shutdown(self):
        pass
'''


class SglangEngine(unittest.TestCase):
    def run_it(self, fault, *arguments):
        """(exit code, what it printed) with a fault of the fake."""
        with tempfile.TemporaryDirectory() as folder:
            entry = os.path.join(folder, "sglang/srt/entrypoints")
            os.makedirs(entry)
            for path, text in (("engine.py", FAKE), ("libnccl.so.2", "")):
                with open(os.path.join(entry, path), "w") as file:
                    file.write(text)
            done = subprocess.run(
                [sys.executable, os.path.join(HERE, "sglang_engine.py"), "--logs", folder, "--repeat", "2",
                 "--front", os.path.join(entry, "libnccl.so.2"), *arguments],
                env={**os.environ, "PYTHONPATH": folder, "FAULT": fault}, capture_output=True, text=True)  # fmt: skip
            return done.returncode, done.stdout + done.stderr

    def test_all_is_right(self):
        code, said = self.run_it("")
        self.assertEqual(code, 0, said)
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        self.assertEqual([one["mode"] for one in lines], ["nccl", "custom", "front"])
        for one in lines:
            for batch in ("batch 1", "batch 8", "batch 64"):
                self.assertEqual(set(one[batch]), {"us_per_step", "first_token_ms", "whole_ms", "tokens"})
                self.assertEqual(len(one[batch]["whole_ms"]), 2)
        self.assertIn("7 passed, 0 failed", said)

    def test_faults_are_found(self):
        for fault, line in {
            "start": "NOT  nccl: starts",
            "custom": "NOT  custom: starts, and its libraries serve it",
            "library": "NOT  front: starts, and its libraries serve it",
            "count": "NOT  nccl: all batches",
            "mode": "NOT  batch 1: the same tokens",
            "repeat": "NOT  batch 1: the same tokens",
        }.items():
            with self.subTest(fault):
                code, said = self.run_it(fault, "--batches", "1")
                self.assertEqual(code, 1, said)
                self.assertIn(line, said)

    def test_ranks_on_one_gpu(self):
        code, said = self.run_it("", "--one-gpu", "--batches", "1")
        self.assertEqual(code, 0, said)
        self.assertIn('"mode": "front"', said)
        self.assertNotIn('"mode": "custom"', said)
        code, said = self.run_it("", "--one-gpu", "--modes", "custom")
        self.assertEqual(code, 2, said)
        self.assertIn("mode custom needs a GPU a rank", said)

    def test_multicast_is_refused(self):
        code, said = self.run_it("", "--modes", "nccl", "--more", '{"enable_nccl_nvls": true}')
        self.assertEqual(code, 1, said)
        self.assertIn("NOT  nccl: starts", said)


class Prune(unittest.TestCase):
    def test_code_of_other_gpus_is_zeroed(self):
        def part(kind, architecture, payload):
            return struct.pack("<HHIQ12xI", kind, 0, 64, len(payload), architecture).ljust(64, b"\1") + payload

        parts = part(2, 80, b"a" * 16) + part(2, 90, b"b" * 16) + part(1, 90, b"c" * 16)
        code = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(parts)) + parts + bytes(8)
        names = b"\0.nv_fatbin\0".ljust(16, b"\0")
        table = 64 + len(names) + len(code)
        sections = b"".join(struct.pack("<IIQQQQ24x", *one) for one in (
            (0, 0, 0, 0, 64, len(names)), (1, 0, 0, 0, 64 + len(names), len(code))))  # fmt: skip
        head = bytearray(64)
        struct.pack_into("<Q", head, 40, table)
        struct.pack_into("<HHH", head, 58, 64, 2, 0)
        data = bytearray(bytes(head) + names + code + sections)
        size = len(data)
        self.assertEqual(sglang_load.prune(data), 16)
        self.assertEqual((data.count(b"a" * 16), data.count(b"b" * 16), data.count(b"c" * 16)), (0, 1, 0))
        self.assertEqual(len(data), size)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
