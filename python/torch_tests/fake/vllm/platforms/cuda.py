"""The platform of NVIDIA's GPUs."""


class CudaPlatform:
    """What vLLM asks about a device."""

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """The path of a class."""
        return "vllm.distributed.device_communicators.cuda_communicator.CudaCommunicator"

    @classmethod
    def use_custom_allreduce(cls) -> bool:
        """Whether vLLM's own all-reduce may be used."""
        return True

    @classmethod
    def apply_config_platform_defaults(cls, vllm_config) -> None:
        """Before vLLM's own defaults."""
        vllm_config.seen = True
