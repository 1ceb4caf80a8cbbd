"""What suites of checks share. Each rank is a process: checks.py SUITE RANKS RANK FOLDER

The default group is mscclc's, on the host device; `gloo` is a group of the same ranks, which says
what is right. The last line says how many checks passed and failed on this rank. With TEST_DEVICE=cuda
tensors are of GPUs, in those suites that say nothing of their device. What still runs after DUMP_AFTER
seconds says where it is, and so does what is ended by SIGABRT. PATIENCE (300) is how long groups wait.
"""

import datetime
import faulthandler
import gc
import importlib
import os
import signal
import subprocess
import sys
import traceback

import torch
import torch.distributed as dist

PATIENCE = datetime.timedelta(seconds=float(os.environ.get("PATIENCE", 300)))
# A program of two ranks, for suites that load plans.
EXCHANGE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "testdata", "exchange.mscl"
)


class Ranks:
    """This rank among the others."""

    def __init__(self, size, rank, folder):
        self.size, self.rank, self.folder = size, rank, folder
        self.gloo = None
        self.passed = self.failed = 0

    def say_counts(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)

    def die(self):
        """Ends the process in a check, which has passed so far."""
        self.passed += 1
        self.say_counts()
        os._exit(0)

    def values(self, count, dtype, seed=0, rank=None, most=3):
        """Small whole numbers, another row for each rank: sums and products are exact."""
        rank = self.rank if rank is None else rank
        random = torch.Generator().manual_seed(1000 * seed + rank)
        found = torch.randint(
            0, 2 if dtype == torch.bool else most, (count,), generator=random, device="cpu"
        ).to(device())
        return torch.complex(found.float(), -found.float()) if dtype.is_complex else found.to(dtype)


def device():
    """Where tensors are, if nothing else is said."""
    return torch.get_default_device()


def equal(found, wanted, what=""):
    """Fails where they differ in a bit, type or shape."""
    assert found.dtype == wanted.dtype, f"{what}: {found.dtype} instead of {wanted.dtype}"
    assert found.shape == wanted.shape, f"{what}: {found.shape} instead of {wanted.shape}"
    if not torch.equal(found.detach(), wanted.detach()):
        bad = int((found != wanted).sum())
        raise AssertionError(f"{what}: {bad} of {found.numel()} elements are wrong")


def refused(call, *words):
    """The call is an error whose text has all words."""
    try:
        work = call()
        if work is not None:
            work.wait()
    except Exception as error:  # of whatever type
        for word in words:
            assert word in str(error), f"no '{word}' in: {error}"
        return
    raise AssertionError("it was not refused")


CUT_SHORT = """
import os, sys, time
import mscclc
import torch, torch.distributed as dist
import mscclc.torch
backend, store, rank, size = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])
dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size)
exec(sys.argv[5])  # what makes call()
call()

def has_launched(rank):
    with open(f"{store}.log{rank}") as log:
        return "call 2 of executable" in log.read()

if rank == size - 1:
    while not all(has_launched(r) for r in range(size - 1)):
        time.sleep(0.01)
    os._exit(0)
try:
    call()
except (dist.DistBackendError, mscclc.LibraryError):
    os._exit(7)
"""


def a_call_is_cut_short(ranks, backend, call, handling, ends):
    """Checks how processes end in whose second call() the last rank dies. `call`: Python that makes it."""
    store = f"{ranks.folder}/cut short {handling}"
    log = f"{store}.log{ranks.rank}"
    environment = {**os.environ, "MSCCLC_DEBUG": "INFO", "MSCCLC_DEBUG_SUBSYS": "CALL", "MSCCLC_DEBUG_FILE": log}
    if handling is not None:
        environment["TORCH_MSCCLC_ASYNC_ERROR_HANDLING"] = handling
    arguments = [backend, store, str(ranks.rank), str(ranks.size), call]
    done = subprocess.run(
        [sys.executable, "-c", CUT_SHORT, *arguments], env=environment, capture_output=True, text=True
    )
    with open(log) as file:
        said = file.read() + done.stderr
    dies = ranks.rank == ranks.size - 1
    assert done.returncode == (0 if dies else -signal.SIGABRT if ends else 7), (handling, done, said)
    assert ("this process ends, as calls of its rank were cut short" in said) == (ends and not dies), said


def init(ranks, backend="mscclc", name="store", **more):
    """The default group, by a file."""
    dist.init_process_group(
        backend,
        init_method=f"file://{ranks.folder}/{name}",
        rank=ranks.rank,
        world_size=ranks.size,
        timeout=more.pop("timeout", PATIENCE),
        **more,
    )


def main():
    suite, size, rank, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    faulthandler.enable()
    faulthandler.dump_traceback_later(float(os.environ.get("DUMP_AFTER", 870)), repeat=True)
    torch.set_num_threads(1)
    on_gpus = os.environ.get("TEST_DEVICE") == "cuda"
    if on_gpus:
        torch.cuda.set_device(rank % torch.cuda.device_count())
        torch.set_default_device(f"cuda:{torch.cuda.current_device()}")
    module = importlib.import_module(suite)
    ranks = Ranks(size, rank, folder)
    alone = getattr(module, "ALONE", False)  # checks make groups of their own
    if not alone:
        init(ranks)
        ranks.gloo = dist.new_group(backend="gloo", timeout=PATIENCE)
    for check in module.CHECKS:
        if os.environ.get("ONLY") and os.environ["ONLY"] not in check.__name__:
            continue
        if on_gpus and check in getattr(module, "HOST_ONLY", []):
            continue
        try:
            print(f"{check.__name__} …", flush=True)
            check(ranks)
            ranks.passed += 1
        except Exception:  # every check is tried
            ranks.failed += 1
            print(f"rank {rank} of {size}: {check.__name__} failed\n{traceback.format_exc()}",
                  flush=True)  # fmt: skip
            if alone and dist.is_initialized():
                dist.destroy_process_group()
        if not alone:
            dist.barrier(ranks.gloo)
    if not alone:
        gc.collect()  # models of DDP lie in cycles, and hold groups whose threads must end before the interpreter
        dist.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()
    ranks.say_counts()


if __name__ == "__main__":
    main()
