"""vLLM's CUDA platform; another class makes the collectives, and nothing takes them before it."""

from typing import Any

from vllm.platforms.cuda import CudaPlatform


class MscclcPlatform(CudaPlatform):
    """The CUDA platform, with communicators of mscclc."""

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """The path of the class of which vLLM makes a communicator for each of its groups."""
        return "mscclc.vllm.communicator.MscclcCommunicator"

    @classmethod
    def use_custom_allreduce(cls) -> bool:
        """vLLM's own all-reduce is not set up: it would get no call."""
        return False

    @classmethod
    def apply_config_platform_defaults(cls, vllm_config: Any) -> None:
        """FlashInfer's kernel of all-reduce and norm, which vLLM takes by default where FlashInfer is
        installed, stays off unless it is asked for: with it no all-reduce gets to a communicator."""
        super().apply_config_platform_defaults(vllm_config)
        passes = vllm_config.compilation_config.pass_config
        if passes.fuse_allreduce_rms is None:
            passes.fuse_allreduce_rms = False
