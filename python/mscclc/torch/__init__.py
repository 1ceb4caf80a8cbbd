"""torch.distributed with mscclc: a backend, custom ops, and a communicator for inference engines.

    import torch.distributed as dist
    dist.init_process_group("mscclc")            # found by its entry point, where the wheel is
                                                 # installed; else: import mscclc.torch
    dist.init_process_group("cpu:gloo,cuda:mscclc")
    dist.init_process_group("mscclc", pg_options=mscclc.torch.Options(fallback=True))

The backend needs a small library that is built once for a version of torch:

    python3 -m mscclc.torch.adapter
"""

import importlib.util
import sys
from contextlib import AbstractContextManager

from .options import Options

__all__ = ["Options", "order", "register"]


def register() -> None:
    """Registers the backend "mscclc" of torch.distributed; the second time nothing.

    It is what the entry point of the group `torch.backends` calls when torch is imported, which this
    module may be doing: so torch is imported here, and what needs more is loaded by the first group.
    """
    import torch.distributed

    if torch.distributed.is_available() and "mscclc" not in torch.distributed.Backend.backend_list:
        torch.distributed.Backend.register_backend(
            "mscclc", _create, extended_api=True, devices=["cpu", "cuda"]
        )


def order(name: str) -> AbstractContextManager:
    """A context manager: within it, the sums of all calls of the backend that this process makes keep
    to a contract: "any", "replicated", "ranks", "tree" or "exact" (docs/bits.md). All ranks must do the
    same. It is for all threads, as the autograd engine makes calls in its own."""
    from .backend import order

    return order(name)


def _create(of_group, options):
    from . import orders
    from .backend import create

    made = create(of_group, options)
    orders.keep(of_group.group_id, options.order if options is not None else None)
    return made


def _end_command_without_torch():
    """Ends `python3 -m mscclc.torch.…`, which imports this module first, if torch is not there."""
    commands = [word for word in sys.orig_argv if word.startswith(__name__ + ".")]
    if commands and importlib.util.find_spec("torch") is None:
        sys.exit(f"{commands[0]}: torch is not installed for {sys.executable}")


_end_command_without_torch()
register()
