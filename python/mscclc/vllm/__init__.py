"""vLLM's tensor-parallel collectives by mscclc: a platform plug-in, which vLLM finds where the wheel is
installed (entry point of the group `vllm.platform_plugins`). Nothing of it is imported without vLLM.

It serves all-reduces, all-gathers and reduce-scatters of tensor-parallel groups on one node. It calls
libmscclc, so it needs no adapter. `VLLM_PLUGINS=` leaves vLLM as it is.
"""

from typing import Optional

__all__ = ["PLATFORM", "register"]

PLATFORM = "mscclc.vllm.platform.MscclcPlatform"


def register() -> Optional[str]:
    """What vLLM calls in each process: the path of the platform's class; None: no GPU of NVIDIA's is here.
    vLLM's own test decides, which does not initialize CUDA: processes may yet be forked."""
    from vllm.platforms import cuda_platform_plugin

    return PLATFORM if cuda_platform_plugin() else None
