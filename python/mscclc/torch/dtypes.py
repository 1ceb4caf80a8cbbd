"""Torch's types and the names that plans have for them: one list, of which each kind of call takes some."""

from typing import Dict

import torch

from ..buffers import TORCH_TYPES

_FOUND = {name: getattr(torch, text.split(".")[1], None) for text, name in TORCH_TYPES.items()}
# Of those that this torch has.
DTYPE_OF: Dict[str, torch.dtype] = {name: dtype for name, dtype in _FOUND.items() if dtype is not None}
NAME_OF: Dict[torch.dtype, str] = {dtype: name for name, dtype in DTYPE_OF.items()}

# What rows of a sum are of, and what products give.
WIDE = (torch.float32, torch.float16, torch.bfloat16)
EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2)
