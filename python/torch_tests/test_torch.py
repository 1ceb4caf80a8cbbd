"""The backend with real torch: suites of checks, run by processes."""

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import adapters  # noqa: E402
import make_wheel  # noqa: E402
from ports import free_port  # noqa: E402

PATIENCE = 900  # seconds; only a hang takes so long, also where ranks import torch for a minute
TORCH = tuple(map(int, importlib.metadata.version("torch").split(".")[:2]))
symmetric = unittest.skipIf(TORCH < (2, 11), "symmetric memory needs torch 2.11")


def run(suite, ranks):
    """What each rank printed; AssertionError with all of it where one does not end."""
    folder = tempfile.mkdtemp()
    environment = installed_in(folder)
    try:
        with open(os.path.join(folder, "port"), "w") as file:
            file.write(str(free_port()))
        processes = [_start(suite, ranks, rank, folder, environment) for rank in range(ranks)]
        late = _wait_for(processes)
        outputs = []
        for rank in range(ranks):
            with open(_output(folder, rank), errors="replace") as file:
                outputs.append(file.read())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if late:
        raise AssertionError(f"ranks {late} have not ended in {PATIENCE} s\n{together(outputs)}")
    codes = [process.returncode for process in processes]
    if any(codes):
        raise AssertionError(f"the ranks ended with {codes}\n{together(outputs)}")
    return outputs


def installed_in(folder):
    """The environment of processes that find there what the wheel installs beside the package: by it,
    torch and TorchComms find the backend."""
    installed = os.path.join(folder, "mscclc-0.dist-info")
    os.mkdir(installed)
    with open(os.path.join(installed, "entry_points.txt"), "w") as file:
        file.write(make_wheel.ENTRY_POINTS)
    return {
        **os.environ,
        "PYTHONPATH": f"{folder}:{os.environ['PYTHONPATH']}",
        "PYTHONFAULTHANDLER": "1",  # a process that crashes prints what its threads do
    }


def _output(folder, rank):
    return os.path.join(folder, f"output.{rank}")


def _start(suite, ranks, rank, folder, environment):
    """A rank, which prints into a file: a pipe might be full while another rank is listened to."""
    command = [os.path.join(HERE, "checks.py"), suite, str(ranks), str(rank), folder]
    with open(_output(folder, rank), "w") as file:
        return subprocess.Popen(
            [sys.executable, "-B", *command], stdout=file, stderr=subprocess.STDOUT, cwd=folder,
            env=environment,
        )  # fmt: skip


def _wait_for(processes):
    """The ranks that have not ended in time. They have now, and said where they were."""
    deadline = time.monotonic() + PATIENCE
    late = []
    try:
        for rank, process in enumerate(processes):
            try:
                process.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                late.append(rank)
        for rank in late:
            processes[rank].send_signal(signal.SIGABRT)  # for which faulthandler prints the stacks
        for rank in late:
            processes[rank].wait()
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return late


def together(outputs):
    """What all ranks printed: why one waits, another one may say."""
    return "\n".join(f"---- rank {rank}\n{output}" for rank, output in enumerate(outputs))


class Suites(unittest.TestCase):
    def check(self, suite, *sizes):
        for ranks in sizes:
            with self.subTest(ranks=ranks):
                outputs = run(suite, ranks)
                for output in outputs:
                    last = output.rstrip().rpartition("\n")[2]
                    self.assertRegex(last, r"^[1-9][0-9]* passed, 0 failed$", together(outputs))

    def test_collectives(self):
        self.check("collectives", 1, 2, 3, 4)

    def test_training(self):
        self.check("training", 2)

    def test_functional(self):
        self.check("functional", 2)

    def test_custom_ops(self):
        self.check("custom_ops", 2)

    @unittest.skipIf(TORCH < (2, 11), "the device that the test uses came with torch 2.11")
    def test_event_pool(self):
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "libevents.so")
            subprocess.run([sys.executable, os.path.join(HERE, "event_pool.py"), library], check=True)
            with unittest.mock.patch.dict(os.environ, COUNTED_EVENTS=library):
                self.check("event_pool", 1)

    @symmetric
    def test_symmetric_memory(self):
        self.check("symmetric_memory", 2, 3)

    @symmetric
    def test_zero_copy(self):
        self.check("zero_copy", 2, 3)

    def test_lifecycle(self):
        self.check("lifecycle", 3)

    @unittest.skipIf(TORCH < (2, 15), "reconfigure() came with torch 2.15")
    def test_reconfigure(self):
        self.check("reconfigure", 3)

    def test_arrays(self):
        self.check("arrays", 2, 3)

    def test_plan_ops(self):
        self.check("plan_ops", 2)

    def test_a_process_that_ends_with_plans(self):
        for how, words in ("end", "rank 1 has left"), ("error", "has died"):
            with self.subTest(how=how), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [sys.executable, os.path.join(HERE, "exit_with_plans.py"), "0", folder, how],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
                )  # fmt: skip
                self.assertIn(words, done.stdout)

    def test_row_ops(self):
        self.check("row_ops", 2)

    def test_row_fusion(self):
        self.check("row_fusion", 2, 3)

    def test_row_fusion_edges(self):
        self.check("row_fusion_edges", 2, 3)

    def test_matmul_ops(self):
        self.check("matmul_ops", 1, 2, 3, 4)

    def test_matmul_gradients(self):
        self.check("matmul_gradients", 2, 3)

    def test_matmul_fusion(self):
        self.check("matmul_fusion", 2)

    def test_vllm_fusion(self):
        self.check("vllm_fusion", 2)

    def test_vllm_plugin(self):
        self.check("vllm_plugin", 2)

    def test_torchcomms(self):
        self.check("torchcomms_checks", 1, 2, 3)

    def test_the_adapter_is_for_every_python(self):
        path = os.path.join(os.environ["TORCH_MSCCLC_ADAPTER"], f"libmscclc_torch-{TORCH[0]}.{TORCH[1]}.so")
        symbols = subprocess.run(["nm", "-D", path], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertIn("c10d", symbols)
        self.assertNotRegex(symbols, r"\b_?Py[A-Z_]")

    def test_the_adapter_needs_nothing_that_torch_28_lacks(self):
        """As far as headers say it, in which all later names are others; adapters.py takes those of 2.8 itself."""
        headers = os.path.join(importlib.util.find_spec("torch").submodule_search_locations[0], "include")
        self.assertEqual(adapters.compiles(headers, "2.8.0", adapters.LATER_THAN_2_8), "")

    @unittest.skipIf(TORCH < (2, 11), "what fails is listed for torch 2.11")
    def test_torchs_own(self):
        done = subprocess.run(
            [sys.executable, "-B", os.path.join(HERE, "torch_own.py")],
            env={**os.environ, "WORLD_SIZE": "4", "OMP_NUM_THREADS": "1", "MSCCLC_FLIGHT_FILE": "none"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * PATIENCE,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        counts = re.search(r"Ran (\d+) tests(?s:.*)OK \(skipped=(\d+), expected failures=8\)", done.stdout)
        self.assertGreater(int(counts[1]) - int(counts[2]) - 8, 50)  # passed

    def test_examples(self):
        examples = os.path.join(HERE, "..", "examples")
        comms = [f"rank {r} of 2: the ranks' numbers add up to 1" for r in range(2)]
        same = ["mscclc: other bits in 0 of 10 batches"]
        given, token = (f"{bytes} bytes instead of 28800" for bytes in (14400, 14420))
        for name, ranks, wanted in (
            ("train_by_torch.py", 2, ["loss"]),
            ("sum_by_torchcomms.py", 2, comms),
            ("batch_invariance.py", 4, same),
            ("te_like_mlp.py", 2, ["float32: the bits of serial", "bfloat16: the bits of serial"]),
            ("te_like_mlp.py cpu gloo", 2, ["float32: the bits of serial", "bfloat16: the bits of serial"]),
            ("fused_quantize.py", 3, [f"by a given scale: {given}", f"by a scale a token: {token}"]),
            ("fused_sequence_parallel.py", 3, ["18 rows, 6 a rank", "51912 bytes instead of 103680"]),
            ("fused_bias_layernorm.py", 2, ["bias: the bits of the unfused chain"]),
            ("fused_own_function.py", 0, ["proved: ", "residual: the bits of torch's ops"]),
            ("fused_by_torch_compile.py", 2, ["2 all-reduces fused, 0 left", "the same 48 tokens"]),
        ):
            by = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks else []
            with self.subTest(name=name), tempfile.TemporaryDirectory() as folder:
                environment = installed_in(folder)
                environment["PYTHONPATH"] += f":{HERE}/fake"  # where there is no TorchComms
                file, *words = name.split()
                done = subprocess.run(
                    [sys.executable, *by, os.path.join(examples, file), *words],
                    env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                    timeout=PATIENCE,
                )  # fmt: skip
                self.assertEqual(done.returncode, 0, done.stdout)
                for words in wanted:
                    self.assertIn(words, done.stdout)

    def test_an_example_says_what_it_needs(self):
        example = os.path.join(HERE, "..", "examples", "te_like_mlp.py")
        said = {3: "3 ranks do not divide 64 rows and 96 columns"}
        if shutil.which("nvidia-smi") is None:
            said[1] = "there is no GPU"
        for ranks, words in said.items():
            done = subprocess.run(
                [sys.executable, example, *(["cuda"] if ranks == 1 else [])],
                env={**os.environ, "WORLD_SIZE": str(ranks), "RANK": "0", "LOCAL_RANK": "0"},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
            )  # fmt: skip
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(words, done.stdout)

    def test_step_times(self):
        """Every workload is timed with both backends; results that differ would have ended it."""
        sizes = {
            "layers": 2, "hidden": 64, "heads": 4, "context": 8, "train-layers": 2, "train-hidden": 32,
            "train-heads": 2, "train-batch": 2, "sequence": 8, "vocabulary": 50, "rounds": 2, "calls": 2,
        }  # fmt: skip
        command = [os.path.join(HERE, "step_times.py"), "--device", "cpu", "--ranks", "2", "--batches", "1", "3"]
        command += [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", *command], timeout=PATIENCE, stdout=subprocess.PIPE,
                                  text=True, env=installed_in(folder))  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        # gloo of torch 2.10 prints, too.
        ran_on, *lines = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
        found = (ran_on["hardware"], ran_on["device"], ran_on["layers"])
        self.assertEqual(found, (platform.processor(), "cpu", 2))
        found = [(line["workload"], line.get("batch")) for line in lines]
        self.assertEqual(found, [("decode", 1), ("decode", 3), ("train", None), ("calls", None)])
        for line in lines:
            self.assertEqual(list(line["us"]), ["mscclc", "gloo"])
            self.assertLessEqual(line["ratios"][0], line["ratios"][1])
            self.assertGreater(min(line["us"].values()), 0)

    def overlap_times(self, dtype, kinds):
        """Times one tiny layer of each kind by all ways that processors have: its rows, by kind."""
        with tempfile.TemporaryDirectory() as folder:
            command = [os.path.join(HERE, "overlap_times.py"), "--device", "cpu", "--layers", *kinds,
                       "--rows", "128", "--dtype", dtype, "--calls", "2", "--rounds", "1",
                       "--json", f"{folder}/times", "--patience", "250"]  # fmt: skip
            interpreted = {**installed_in(folder), "TRITON_INTERPRET": "1"}
            done = subprocess.run([sys.executable, "-B", *command], timeout=PATIENCE, stdout=subprocess.PIPE,
                                  text=True, env=interpreted)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout)
            with open(f"{folder}/times") as file:
                found = {one["layer"]: one for one in map(json.loads, file)}
        self.assertEqual({layer: one["kind"] for layer, one in found.items()}, kinds)
        for one in found.values():
            self.assertEqual(one["errors"], {}, done.stdout)
            for name in ("product", "our collective, torch.mm", "op serial 1 own", "op mscclc 4 torch",
                         "op copy_engine 2 own", "op auto torch"):  # fmt: skip
                self.assertGreater(one["us"][name]["eager"], 0, name)
                self.assertIn(name, done.stdout)
        return {one["kind"]: one["us"] for one in found.values()}

    def test_overlap_times(self):
        """All ways that processors have are timed, of all kinds; what fails has its error in its row."""
        kinds = {"tiny.qkv": "gather", "tiny.down": "scatter", "tiny.o_all": "reduce", "tiny.experts": "exchange"}
        us = self.overlap_times("f32", kinds)
        for kind, ways in us.items():
            for name in ("op serial 1 own return_A", "op auto torch return_A"):
                self.assertEqual(name in ways, kind in ("gather", "exchange"), f"{kind}, {name}")
        if importlib.util.find_spec("triton"):
            for name in ("triton allgather_gemm 2", "triton allgather_gemm_copy_engine 4"):
                self.assertGreater(us["gather"][name]["eager"], 0)
            self.assertGreater(us["scatter"]["triton gemm_reducescatter 4"]["eager"], 0)

    def test_overlap_times_of_8_bits(self):
        """With scales, by the ops that have them."""
        self.overlap_times("e4m3", {"tiny.qkv": "gather", "tiny.down": "scatter"})

    def test_row_times(self):
        """A call of rows, and a token of a decoder: what fails, or has other results, is named."""
        def lines(name, *options):
            command = [os.path.join(HERE, name), "--device", "cpu", "--rounds", "1", "--patience", "250", *options]
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, "-B", *command], timeout=PATIENCE, stdout=subprocess.PIPE,
                                      text=True, env=installed_in(folder))  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout)
            return [json.loads(line) for line in done.stdout.splitlines() if '"us"' in line]

        found = lines("row_times.py", "--hidden", "64", "--tokens", "3", "--calls", "2")
        program = os.path.join(HERE, "..", "..", "plans", "rows", "allreduce_norm_1shot.mscl")
        both = ["--program", program, "B=256", "T=64", "S=2", "F=sentinel", "--program", program, "T=2048"]
        programs = lines("row_times.py", "--hidden", "64", "--tokens", "300", "--calls", "2", *both)[0]
        self.assertIn("program 0", programs["us"])
        self.assertEqual(list(programs["failed"]), ["program 1"])
        for rank in (0, 1):
            self.assertRegex(programs["failed"]["program 1"], f"rank {rank}: CompileError: .*'threads' is 2048")
        found += lines("row_steps.py", "--models", "tiny", "--batches", "3", "--layers", "2")
        self.assertEqual([one["failed"] for one in found], [{}, {}])
        self.assertIn("allreduce_norm", found[0]["us"])
        self.assertEqual(list(found[1]["us"]), ["fused", "plain"])

    def test_row_times_failures(self):
        """The rank that fails is named with its reason; results before an error of CUDA are kept; a graph whose replays
        have other bits than eager calls fails."""
        self.run_script("""if 1:
            import types, unittest.mock, torch, row_times
            def gather(into, own):
                into[:] = ["", own][-len(into):]
            fakes = {"all_gather_object": gather, "all_reduce": lambda *_: None, "barrier": lambda: None}
            def contender(call):
                out = torch.zeros(4)
                return row_times.Contender(lambda: call(out), torch.ones(4), lambda: None, [out])
            def fails_at(number):
                left = iter(range(number, 0, -1))
                def call(out):
                    if next(left) == 1:
                        raise RuntimeError("CUDA error: unspecified launch failure")
                return call
            def measured(call, **ways):
                given = types.SimpleNamespace(ranks=1, device="cpu", patience=5, contenders=None, rounds=2, calls=1)
                shape = types.SimpleNamespace(hidden=4, tokens=1, comm=unittest.mock.Mock())
                found = row_times.Measurement(row_times.Ranks(0, given), shape, given, None, {})
                made = {"good": lambda: contender(lambda out: out.fill_(1)), "bad": lambda: contender(call)}
                with unittest.mock.patch.object(row_times, "contenders_of", lambda *_: made):
                    found.run(None)
                return found
            with unittest.mock.patch.multiple(torch.distributed, **fakes):
                given = types.SimpleNamespace(ranks=2, device="cpu", patience=5)
                why = row_times.Ranks(1, given).attempt(lambda: 1 / 0, "one way")[1]
                assert why == "rank 1: ZeroDivisionError: division by zero", why
                found = measured(lambda out: out.add_(1))
                assert list(found.us()) == ["good", "bad"], found.failed  # a sum of zeros each time
                found = measured(lambda out, numbers=iter(range(99)): out.fill_(next(numbers)))
                assert list(found.us()) == ["good"]
                assert found.failed["bad"].endswith("a replay of its graph has other bits"), found.failed
                with unittest.mock.patch.object(row_times.Ranks, "usable", lambda *_: False):
                    found = measured(fails_at(6))
                assert found.lost and list(found.us()) == ["good"]
                assert found.failed["bad"].startswith("round 2: rank 0: RuntimeError: CUDA error"), found.failed
            """)

    def test_row_times_hangs(self):
        """A rank that hangs says at what, and where it is, and ends."""
        script = """if 1:
            import time, types, row_times
            def one_that_hangs():
                time.sleep(10_000)
            ranks = row_times.Ranks(0, types.SimpleNamespace(ranks=1, device="cpu", patience=0.1))
            ranks.say("a way")
            ranks.attempt(one_that_hangs, "a way")
            """
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", "-c", script], cwd=HERE, timeout=PATIENCE, text=True,
                                  stderr=subprocess.PIPE, env=installed_in(folder))  # fmt: skip
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"(?s)^.*a way\nTimeout .*in one_that_hangs")

    def test_overlap_times_reference(self):
        """Whatever ways are chosen, they are compared with the unfused chain of torch, which is waited for; what has failed
        is not tried again."""
        self.run_script("""if 1:
            import types, unittest.mock, torch, overlap_times
            done = []
            def said(what, value):
                done.append(what)
                return value
            layer = types.SimpleNamespace(
                gemm=lambda: None, torchs_comm="torch's", in_order=lambda _, made: made, serial_like=lambda _: None,
                one_after_the_other=lambda comm: said(comm, torch.ones(2)))
            layer.place = place = types.SimpleNamespace(
                rank=0, device=torch.device("cpu"), dtype=torch.float32, slow=None, all_well=lambda error: error,
                slowest=lambda number: number, synchronize=lambda: done.append("synchronize"))
            modes = {"product": lambda: None, "a": lambda: None, "b": lambda: None,
                     "triton x": lambda: said("wrong", torch.zeros(2)), "triton y": lambda: said("fails", 1 / 0)}
            given = types.SimpleNamespace(gemms=[], ways="triton", calls=2, rounds=1)
            with unittest.mock.patch.multiple(overlap_times, layer_of=lambda *_: layer, modes_of=lambda *_: modes), \\
                    unittest.mock.patch.object(torch.distributed, "barrier", lambda _: None):
                shape = overlap_times.Shape(given, place, unittest.mock.Mock(), "tiny.qkv", 128, {})
                shape.prepare()
                us = shape.measure()
            assert done[:2] == ["torch's", "synchronize"], done
            assert done.count("wrong") == 1 and "off by 1.0" in shape.errors["triton x"], shape.errors
            assert "ZeroDivisionError" in shape.errors["triton y"], shape.errors
            assert [name for name, _ in us] == ["product", "a", "b"]
            """)

    def test_overlap_times_bits(self):
        """Whatever of ours has run has the bits of serial by the same GEMMs; torch's native op is asked for where it is
        timed, and where torch takes it."""
        self.run_script("""if 1:
            import os, types, unittest.mock, torch, overlap_modes
            from overlap_modes import NATIVE, Layer, check, has_native_op
            serial, ran = torch.zeros(2), []
            def by_op(backend, chunks, gemm, budget):
                assert (backend, chunks, budget) == ("serial", 2, ran[-1]["budget"])
                return serial
            place = types.SimpleNamespace(synchronize=lambda: None, slow=None, device=None)
            layer = Layer.__new__(Layer)
            layer.kind, layer.place, layer.by_op = "scatter", place, by_op
            layer.whole, layer.torchs_comm = torch.ones(2), lambda: None
            def bits(name, made, backend, budget):
                ran.append({"backend": backend, "chunks": 2, "budget": budget})
                try:
                    check(layer, name, lambda: made, torch.ones(2))
                except AssertionError as error:
                    return str(error)
            one, serial = torch.ones(2), torch.ones(2)
            near = torch.full((2,), 1 + 1e-7)
            with unittest.mock.patch.object(overlap_modes.ops, "explain", lambda *_: ran[-1:]):
                for name, backend, budget, differ in [
                    ("op mscclc 2 torch", "mscclc", 16, True), ("op copy_engine 2 torch", "copy_engine", 1, True),
                    ("op auto own", "mscclc", 16, True), ("op copy_engine 2 own", "copy_engine", 1, True),
                    ("op auto torch", "nccl", 0, False), ("by hand 2", "mscclc", 16, False),
                ]:
                    assert bits(name, one, backend, budget) is None, name
                    want = "other bits than by backend serial" if differ else None
                    assert bits(name, near, backend, budget) == want, name
                assert bits("op auto own return_A", (one, one), "mscclc", 16) is None
                assert "other bits" in bits("op auto own return_A", (one, near), "mscclc", 16)
                assert "another A" in bits("op auto own return_A", (near, one), "mscclc", 16)
            layer.by_torchs_op = lambda: os.environ[NATIVE]
            assert layer.by_torchs_native_op() == "1" and NATIVE not in os.environ
            layer.scales = None
            for kind, rows, there in [("gather", 4096, True), ("gather", 2048, False), ("gather", 8192, False),
                                      ("scatter", 4096, False)]:
                layer.kind, layer.whole = kind, torch.zeros(rows, 1)
                assert has_native_op(layer) == there, (kind, rows)
            """)

    def run_script(self, script):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", "-c", script], cwd=HERE, timeout=PATIENCE, check=True,
                           env=installed_in(folder))  # fmt: skip

    def test_row_times_graphs(self):
        """What a graph was captured of lives as long as what replays it: the graph does not keep its memory."""
        self.run_script("""if 1:
            import contextlib, gc, types, unittest.mock, weakref, torch, row_times
            fakes = {"CUDAGraph": unittest.mock.Mock(), "graph": lambda *_, **__: contextlib.nullcontext()}
            with unittest.mock.patch.multiple(torch.cuda, **fakes):
                zeros, out = torch.zeros(4), torch.ones(4)
                ranks = types.SimpleNamespace(device=torch.device("cuda"))
                replay = row_times.graph_of(ranks, lambda: None, 2, lambda zeros=zeros: torch.mul(zeros, 1.0, out=out))
                watched = weakref.ref(zeros)
                del zeros
                gc.collect()
                assert watched() is not None
                replay()
                del replay
                gc.collect()
                assert watched() is None
            """)

    def test_auto_gemm(self):
        """Who multiplies unless it is said: on GPUs the library, where it has the types and rows of whole 16 bytes."""
        self.run_script("""if 1:
            import torch
            from torch._subclasses import FakeTensorMode
            from mscclc.torch.overlap.calls import Gather, How, Sum

            def chosen(device, dtype="bf16", k=16, n=32, gemm="auto", a=None):
                types = (a or dtype, a or dtype, dtype)
                how = How(2, "auto", 0, 0, gemm)
                of = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[dtype]
                with FakeTensorMode():
                    A, B = (torch.empty(shape, device=device, dtype=of) for shape in ((8, k), (k, n)))
                    made = [Gather(f"all{to}_gemm", A, [B, B], [], 0, types, how) for to in ("gather", "toall")]
                    kinds = (("gemm_reducescatter", 0), ("gemm_reducescatter", 1), ("gemm_allreduce", 0))
                    made += [Sum(kind, A, B, None, False, dim, types, how) for kind, dim in kinds]
                names = {one.place.gemm for one in made}
                assert len(names) == 1, names
                return names.pop()

            assert chosen("cuda:0") == chosen("cuda:0", "f16") == "own"
            assert chosen("cpu") == chosen("cuda:0", "f32") == chosen("cuda:0", a="e4m3") == "torch"
            assert chosen("cuda:0", k=20, n=20) == chosen("cuda:0", gemm="torch") == "torch"
            assert chosen("cpu", gemm="own") == "own"
            """)

    def test_overlap_cost(self):
        """Each op has its row, of numbers that say nothing here."""
        with tempfile.TemporaryDirectory() as folder:
            command = [os.path.join(HERE, "overlap_cost.py"), "--ranks", "2", "--calls", "2", "--rounds", "1",
                       "--beside", "gloo"]  # fmt: skip
            done = subprocess.run([sys.executable, "-B", *command], timeout=PATIENCE, stdout=subprocess.PIPE,
                                  text=True, env=installed_in(folder))  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        head, *rows = done.stdout.splitlines()
        self.assertEqual(head.split()[-8:], ["C", "own", "adds", "torch", "adds", "Python", "gloo", "ratio"])
        for name in ("all_gather_matmul", "all_to_all_matmul", "matmul_reduce_scatter", "matmul_all_reduce",
                     "all_gather_scaled_matmul", "scaled_matmul_reduce_scatter"):  # fmt: skip
            numbers = [row[44:].split() for row in rows if row.startswith(name)]
            self.assertTrue(numbers and all(float(one[5]) > 0 for one in numbers), done.stdout)

    def test_torchcomms_bench(self):
        """All files are written; a result that is wrong would have ended it."""
        sides = {"torchcomms mscclc", "torch.distributed gloo"}
        names = ["all_reduce", "all_gather", "reduce_scatter"]
        with tempfile.TemporaryDirectory() as folder:
            command = [
                os.path.join(HERE, "torchcomms", "bench.py"), "--device", "cpu", "--ranks", "2",
                "--beside", "gloo", "--sizes", "1K", "16K", "--calls", "2",
                "--json", f"{folder}/times.json", "--report", f"{folder}/report",
            ]  # fmt: skip
            subprocess.run([sys.executable, "-B", *command], check=True, timeout=PATIENCE,
                           env=installed_in(folder))  # fmt: skip
            with open(f"{folder}/times.json") as file:
                rows = json.load(file)["rows"]
            found = sorted((r["side"], r["collective"], r["bytes"]) for r in rows)
            wanted = [(s, n, b) for s in sides for n in names for b in (1 << 10, 1 << 14)]
            self.assertEqual(found, sorted(wanted))
            with open(f"{folder}/report/report.md") as file:
                text = file.read()
            for name in names:
                self.assertIn(f"![{name}]({name}.svg)", text)
                drawing = xml.parse(f"{folder}/report/{name}.svg").getroot()
                lines = drawing.findall("{http://www.w3.org/2000/svg}polyline")
                self.assertEqual([len(line.get("points").split()) for line in lines], [2, 2])


if __name__ == "__main__":
    unittest.main()
