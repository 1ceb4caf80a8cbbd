"""python3 -m mscclc.torch.adapter [FOLDER]: builds the adapter."""

import sys

from ...errors import UsageError
from . import build

if len(sys.argv) > 2:
    sys.exit("usage: python3 -m mscclc.torch.adapter [FOLDER]")
try:
    print(build(*sys.argv[1:]))
except UsageError as error:
    sys.exit(f"mscclc.torch.adapter: {error}")
