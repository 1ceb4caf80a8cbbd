"""What our own tests of TorchComms' interface share. Each rank is a process of torchrun, whose tensors
are of TEST_DEVICE."""

import os
import time
import unittest
from datetime import timedelta

import torch
import torchcomms
from torch.distributed import PrefixStore, TCPStore

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEVICE = torch.device(os.environ["TEST_DEVICE"])
ON_GPUS = DEVICE.type == "cuda"
if ON_GPUS:
    torch.cuda.set_device(DEVICE)
torch.set_default_device(DEVICE)
PATIENCE = timedelta(seconds=int(os.environ["TORCHCOMM_TIMEOUT_SECONDS"]))

in_cpp = unittest.skipIf(
    "TORCHCOMMS_BACKEND_LIB_PATH_MSCCLC" not in os.environ, "TorchComms asks backends in C++ only"
)
on_host = unittest.skipIf(ON_GPUS, "a GPU's stream waits, and not the host")
# torchrun's agent serves it.
_store = TCPStore(
    os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=PATIENCE
)
_numbers = iter(range(1000))


def store():
    """The same one on all ranks, for those that ask for it in the same order."""
    return PrefixStore(f"own/{next(_numbers)}", _store)


def meet():
    """Waits for all ranks, without a communicator."""
    place = store()
    place.add("here", 1)
    while place.add("here", 0) < SIZE:
        time.sleep(0.001)


def comm(name, **more):
    """A communicator of all ranks."""
    more = {"store": store(), "timeout": PATIENCE, **more}
    return torchcomms.new_comm("mscclc", DEVICE, name, **more)


def total(of_comm):
    """What all ranks give, added up: it works."""
    tensor = torch.ones(5)
    of_comm.all_reduce(tensor, torchcomms.ReduceOp.SUM, async_op=False)
    return tensor[0].item()
