"""What MSCCL++ has in `mscclpp.ext`."""

from mscclc.mscclpp.algorithm import AlgorithmCollectionBuilder

__all__ = ["AlgorithmCollectionBuilder"]
