"""Two ranks that load a plan, of which one's process ends, by an error or without: exit_with_plans.py RANK FOLDER error|end

The other one, which has started it, then says how the next call ends.
"""

import subprocess
import sys

import mscclc
import mscclc.torch.plans as plans
import torch.distributed as dist
from checks import EXCHANGE

rank, folder, how = int(sys.argv[1]), *sys.argv[2:]
other = None if rank else subprocess.Popen([sys.executable, __file__, "1", folder, how])
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
plans.load("sum", mscclc.compile(EXCHANGE), max_bytes=64)
if other is None and how == "error":
    raise ValueError("here")
if other is not None:
    other.wait()
    try:
        plans._loaded["sum"][0].barrier()
    except mscclc.LibraryError as error:
        print(error)
