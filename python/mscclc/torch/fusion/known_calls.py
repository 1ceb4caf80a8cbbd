"""Calls of a fused op that were checked once: later ones on tensors of the same shapes and types need their addresses
alone, which takes the processor a fraction of the time."""

from typing import Any, Dict, Hashable, List, NamedTuple, Optional, Tuple

import torch

from ...communicator import Communicator
from ..._prepared_call import PreparedCall

_MOST = 4096  # more shapes than that are checked anew


def stream_of(input: torch.Tensor) -> Optional[int]:
    """The current stream of its device; None: the host's, which has none."""
    return None if input.device.type == "cpu" else torch.cuda.current_stream(input.device).cuda_stream


class KnownCall(NamedTuple):
    """A call, and what it depends on besides its key."""

    comm: Communicator
    call: PreparedCall
    kind: str  # of its program
    ranks: Any
    order: Tuple[Optional[str], ...]
    externals: Tuple[int, ...]  # which of the tensors that are read, and of the results, each is

    def run(self, input: torch.Tensor, given: List[torch.Tensor], results: List[torch.Tensor], main: int) -> None:
        """Queues it on the current stream. On the host it waits for it: torch may reuse memory at once."""
        stream = stream_of(input)
        tensors = [*given, *results]
        addresses = [tensors[i].data_ptr() for i in self.externals]
        self.call.queue(input.data_ptr(), results[main].data_ptr(), addresses, stream)
        if stream is None:
            self.comm.synchronize()


_known: Dict[Hashable, KnownCall] = {}


def key_of(said: Tuple[Hashable, ...], tensors: List[torch.Tensor]) -> Optional[Hashable]:
    """What calls have in common that need be checked once; None: a tensor lies so that it is copied first, or is empty."""
    shapes = []
    for one in tensors:
        if not one.is_contiguous() or one.is_neg() or one.is_conj() or one.data_ptr() % 16 or one.numel() == 0:
            return None
        shapes.append((one.shape, one.dtype, one.device))
    return (*said, *shapes)


def find(key: Optional[Hashable], ranks: Any, order: Tuple[Optional[str], ...]) -> Optional[KnownCall]:
    """What is known of a key, if it was of the same group, and in the same order of sums."""
    known = None if key is None else _known.get(key)
    return known if known is not None and known.ranks is ranks and known.order == order else None


def keep(key: Optional[Hashable], call: KnownCall) -> None:
    """For the next call of that key."""
    if key is None:
        return
    if len(_known) >= _MOST:
        _known.clear()
    _known[key] = call


def forget() -> None:
    """Of all calls: plans are freed."""
    _known.clear()
