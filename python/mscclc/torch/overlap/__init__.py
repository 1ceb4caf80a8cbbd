"""Products of matrices that overlap with collectives: the ops, their gradients, and a pass for compiled models.

    from mscclc import ops                                           # what programs call
    from mscclc.torch.overlap.fusion import MatmulFusion             # what torch.compile takes
"""

from . import gradients, ops, scaled  # noqa: F401, they define the ops

__all__ = []
