"""A row function of your own: compiled, proved, loaded and called by Python, after an all-reduce of two processes.

    python3 python/examples/fused_own_function.py           on the host; torch is there for memory and to compare
    python3 python/examples/fused_own_function.py cuda      a GPU for each rank

Here the residual stream is scaled, and so is each column of the sum; then comes a norm without a weight, and the
largest value of each row, which a quantisation would take.
"""

import multiprocessing
import sys

import torch

import mscclc

RANKS, ROWS, COLUMNS = 2, 5, 2880
PROGRAM = """
row scaled_residual(x: row T, residual: row T, gain: columns T, keep: scalar f32) {
  let stream = T(T(keep * residual) + T(T(x) * gain))
  let norm = T(stream * rsqrt(mean(stream * stream) + 1e-5))
  out residual_out: row T = stream
  out peak: token f32 = max(abs(norm))
  out y: row T = norm
}
program    allreduce_scaled_residual
param      R = 2
external   residual: row T inout, gain: columns T replicated, keep: scalar f32 replicated,
           peak: token f32 out
collective allreduce(ranks: R, columns: 8.., then: scaled_residual, order: ranks)

rank r in 0..R {
  let others = 0..R except r, after = r + 1 .. R
  buffer inbox[others] packets: LL16, copies: 2  # chunk p: what rank p sent
  buffer sum[1]
  channel ch[p in others] = memory(p)
  for p in others { put_packets ch[p].inbox[r] <- input[0] }
  reduce_packets sum[0] <- inbox[p] for p in 0..r, input[0], inbox[p] for p in after
  apply scaled_residual residual[0], peak[0], output[0] <- sum[0], residual[0], gain, keep
}
"""


def unfused(parts, residual, gain, keep):
    stream = keep * residual + sum(parts) * gain
    norm = stream * torch.rsqrt(stream.square().mean(-1, keepdim=True) + 1e-5)
    return norm, stream, norm.abs().amax(-1, keepdim=True)


def rank_main(rank, id, plan, cuda):
    device = torch.device("cpu")
    if cuda:
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.manual_seed(0)  # every process makes all ranks' parts, to compare
    parts = [torch.randn(ROWS, COLUMNS).to(device) for _ in range(RANKS)]
    residual, gain = torch.randn(ROWS, COLUMNS).to(device), torch.randn(COLUMNS).to(device)
    wanted = unfused(parts, residual, gain, 0.5)
    y, peak = torch.empty_like(residual), torch.empty(ROWS, 1, device=device)
    with mscclc.Communicator(RANKS, id, rank, device=device.index) as comm:
        loaded = comm.load(plan, max_bytes=64 * COLUMNS * 4)  # 64 rows of f32 at most
        outside = {"residual": residual, "gain": gain, "keep": 0.5, "peak": peak}
        loaded.run(parts[rank], y, externals=outside).wait()  # on the default stream, as torch is
    assert torch.equal(residual, wanted[1])
    torch.testing.assert_close((y, peak), (wanted[0], wanted[2]), rtol=1e-5, atol=0)  # other sums over the row
    if rank == 0:
        print(f"residual: the bits of torch's ops; norm: {(y - wanted[0]).abs().max():.1e} off at most")


def main():
    plan = mscclc.compile(PROGRAM, R=RANKS)  # of any multiple of 8 columns
    print(f"proved: {plan.verify()}", flush=True)
    plan = plan.with_columns(COLUMNS)
    id, cuda = mscclc.unique_id(), sys.argv[1:] == ["cuda"]
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=rank_main, args=(rank, id, plan, cuda)) for rank in range(RANKS)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    assert all(one.exitcode == 0 for one in ranks)


if __name__ == "__main__":
    main()
