"""Platforms."""

HAS_GPU = True


def cuda_platform_plugin():
    """The path of the platform of NVIDIA's GPUs, where there are any."""
    return "vllm.platforms.cuda.CudaPlatform" if HAS_GPU else None
