"""The platform of NVIDIA's GPUs."""


class CudaPlatform:
    """What vLLM asks about a device."""

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """The path of a class."""
        return "vllm.distributed.device_communicators.cuda_communicator.CudaCommunicator"
