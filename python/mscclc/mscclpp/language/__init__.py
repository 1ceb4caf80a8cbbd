"""MSCCL++'s language in Python, written anew: `from mscclpp.language import *`."""

from . import channel, collectives, general, loop, program, rank, thread_block_group, utils
from .channel import *  # noqa: F403
from .collectives import *  # noqa: F403
from .general import *  # noqa: F403
from .internal.types import *  # noqa: F403
from .loop import *  # noqa: F403
from .program import *  # noqa: F403
from .rank import *  # noqa: F403
from .thread_block_group import *  # noqa: F403
from .utils import *  # noqa: F403
