"""python3 -m mscclc.torch.comms SOURCES [FOLDER]: builds the backend of TorchComms in C++."""

import sys

from ...errors import UsageError
from . import build

if not 2 <= len(sys.argv) <= 3:
    sys.exit("usage: python3 -m mscclc.torch.comms SOURCES [FOLDER]")
try:
    print(build(*sys.argv[1:]))
except UsageError as error:
    sys.exit(f"mscclc.torch.comms: {error}")
