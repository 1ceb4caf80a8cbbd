"""A Triton kernel that lets the call behind it begin early: RMS norm ahead of a collective.

Needs PyTorch, Triton 3.4 or later and a GPU of compute capability 9.0 or higher; run by hand:

    python3 runtime/cuda/examples/triton_norm.py

checks the kernel against PyTorch. docs/gpu.md says what holds ahead of calls.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import cuda


@triton.jit
def rms_norm(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    # Only where it is launched with launch_pdl=True does this wait: for the launch ahead, whose
    # results are there from now on.
    cuda.gdc_wait()
    # The one line: the call behind gets ready while the rest of this kernel runs.
    cuda.gdc_launch_dependents()
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values) / columns + eps)
    weights = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * columns + at, values * scale * weights, mask=inside)


def norm(x, weight, eps=1e-6):
    """RMS norm of the rows of x, which a collective on the same stream may read next."""
    out = torch.empty_like(x)
    rows, columns = x.shape
    rms_norm[(rows,)](
        x, weight, out, columns, eps, BLOCK=triton.next_power_of_2(columns), launch_pdl=True
    )
    return out


def main():
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 9:
        raise SystemExit("triton_norm.py: needs a GPU of compute capability 9.0 or higher")
    torch.manual_seed(1)
    x = torch.randn(128, 3000, device="cuda")
    weight = torch.randn(3000, device="cuda")
    wanted = torch.nn.functional.rms_norm(x, (3000,), weight, 1e-6)
    torch.testing.assert_close(norm(x, weight), wanted)
    print("right")


if __name__ == "__main__":
    main()
