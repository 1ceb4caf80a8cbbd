"""vLLM's CUDA platform; another class makes the collectives."""

from vllm.platforms.cuda import CudaPlatform


class MscclcPlatform(CudaPlatform):
    """The CUDA platform, with communicators of mscclc."""

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """The class of which vLLM makes a communicator for each of its groups."""
        return "vllm_mscclc.communicator.MscclcCommunicator"
