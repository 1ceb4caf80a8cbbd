"""torch's symmetric memory by mscclc: backend "MSCCLC" of torch.distributed._symmetric_memory.

    import torch.distributed._symmetric_memory as symm
    import mscclc.torch.symmetric

    symm.set_backend("MSCCLC")                       # before the first symmetric memory
    tensor = symm.empty(1024, device="cuda")
    handle = symm.rendezvous(tensor, dist.group.WORLD)

It needs the adapter, as the backend "mscclc" does. For tensors of cpu, torch has no other: they are
served whatever is chosen.
"""

import torch

from ..errors import UsageError
from .adapter import has_symmetric_memory, load

__all__ = ["register"]

_registered = False


def register() -> None:
    """Makes the backend known to torch; the second time nothing."""
    global _registered
    if not _registered:
        if not has_symmetric_memory():
            raise UsageError(
                f"symmetric memory needs torch 2.11 or later; this is torch {torch.__version__}"
            )
        load()
        torch.ops.mscclc.register_symmetric_memory(torch.cuda.is_available())
        _registered = True


register()
