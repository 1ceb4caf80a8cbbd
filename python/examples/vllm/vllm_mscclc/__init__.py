"""A platform plug-in of vLLM: its CUDA platform with mscclc's device communicators."""

from typing import Optional

PLATFORM = "vllm_mscclc.platform.MscclcPlatform"


def register() -> Optional[str]:
    """What vLLM calls in each process: the platform's class; None: there is no GPU here."""
    import torch

    return PLATFORM if torch.cuda.is_available() else None
