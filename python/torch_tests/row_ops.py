"""Plans with row functions as custom ops: in place and functional."""

import mscclc
import mscclc.torch.plans as plans
import mscclc.torch.row_ops  # noqa: F401, defines the ops
import torch
from checks import device, equal, refused

COLUMNS = 16
PROGRAM = """
row step(x: row T, residual: row T, weight: columns T, scale: scalar f32) {
  let stream = T(T(x) + residual)
  out residual_out: row T = stream
  out q: row e4m3 = stream
  out total: token f32 = sum(stream)
  out y: row T = stream * weight * scale
}
program    mine
external   residual: row T inout, weight: columns T replicated, scale: scalar f32 replicated
external   q: row e4m3 out, total: token f32 out
collective allreduce(ranks: 2, columns: 16, then: step)
rank r in 0..2 {
  let p = 1 - r
  buffer inbox[1] packets: LL16, copies: 2
  buffer all[1]
  channel to = memory(p)
  tb 0 {
    put_packets to.inbox[0] <- input[0]
    reduce_packets all[0] <- inbox[0], input[0]
    apply step residual[0], q[0], total[0], output[0] <- all[0], residual[0], weight, scale
  }
}
"""
NAMES = ["weight", "residual", "scale"]


def _load(name, dtype="f32"):
    plans.load(name, mscclc.compile(PROGRAM), max_bytes=1 << 16, device=device(), dtype=dtype)


def _given(rows, dtype=torch.float32):
    count = rows * COLUMNS
    x = (torch.arange(count) % 5).to(dtype).reshape(rows, COLUMNS)
    residual = (torch.arange(count) % 3).to(dtype).reshape(rows, COLUMNS)
    return x, residual, torch.full((COLUMNS,), 2.0, dtype=dtype)


def _check(found, rows, scale, dtype=torch.float32):
    out, residual, q, total = found
    x, before, weight = _given(rows, dtype)
    stream = 2 * x + before
    equal(residual, stream, "residual")
    equal(out, stream * weight * scale, "output")
    equal(q.float(), stream.float(), "q")
    equal(total.reshape(-1), stream.float().sum(-1), "total")


def in_place(ranks):
    _load("rows")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for rows in (1, 3, 7):
            x, residual, weight = _given(rows, dtype)
            out, total = torch.empty_like(x), torch.empty(rows)
            q = torch.empty(rows, COLUMNS, dtype=torch.float8_e4m3fn)
            torch.ops.mscclc.run_rows_(x, out, "rows", ["weight", "residual", "q", "total", "scale"],
                                       [weight], [residual, q, total], [0.5])  # fmt: skip
            _check((out, residual, q, total), rows, 0.5, dtype)
    plans.unload("rows")


def functional(ranks):
    _load("rows_of")
    for rows in (1, 4):
        x, residual, weight = _given(rows)
        found = torch.ops.mscclc.run_rows(x, "rows_of", NAMES, [weight], [residual], [0.25])
        equal(residual, _given(rows)[1], "what was given")
        _check(found, rows, 0.25)
    scale = torch.tensor([4.0])
    x, residual, weight = _given(2)
    names = ["weight", "scale", "residual"]
    _check(torch.ops.mscclc.run_rows(x, "rows_of", names, [weight, scale], [residual], []), 2, 4)
    plans.unload("rows_of")


def compiled(ranks):
    _load("rows_compiled")

    @torch.compile(fullgraph=True, backend="aot_eager")
    def layer(x, residual, weight):
        all = torch.ops.mscclc.run_rows(x * 1, "rows_compiled", NAMES, [weight], [residual], [1.0])
        return all[0] + 0, all[1], all[2], all[3]

    for rows in (4, 4, 9):
        x, residual, weight = _given(rows)
        _check(layer(x, residual, weight), rows, 1)
    plans.unload("rows_compiled")


def checked(ranks):
    _load("rows_checked")
    x, residual, weight = _given(3)
    op = torch.ops.mscclc.run_rows.default
    torch.library.opcheck(op, (x, "rows_checked", NAMES, [weight], [residual], [1.0]))
    plans.unload("rows_checked")


def by_shape(ranks):
    """The library's plans, by name, of which a call takes the one for its rows; also with another type of output."""
    for what, dtype in (("allreduce_norm", "f32"), ("allreduce_norm_quantize_sharded", "bf16")):
        plans.load_rows("by_shape", what, columns=COLUMNS, max_rows=200, device=device(), dtype=dtype)
        typed, type = what.endswith("sharded"), torch.float32 if dtype == "f32" else torch.bfloat16
        for rows in (2, 40, 200):
            x, residual, weight = _given(rows, type)
            own = residual[rows // 2 * ranks.rank:][:rows // 2].contiguous() if typed else residual
            names = ["weight", "residual", "eps", *["scale"] * typed]
            found = torch.ops.mscclc.run_rows(x, "by_shape", names, [weight], [own], [0.0, *[0.25] * typed])
            stream = (2 * x + residual).float()
            wanted = (stream * (1 / stream.square().mean(-1, keepdim=True).sqrt()) * weight.float()).to(type).float()
            if typed:
                half = slice(rows // 2 * ranks.rank, rows // 2 * ranks.rank + rows // 2)
                equal(found[1].float(), stream[half], "residual")
                assert found[0].dtype == torch.float8_e4m3fn
                torch.testing.assert_close(found[0].float() * 0.25, wanted, rtol=0.08, atol=0.01)
                out = torch.empty(rows, COLUMNS, dtype=torch.float8_e4m3fn)
                torch.ops.mscclc.run_rows_(x, out, "by_shape", names, [weight], [own.clone()], [0.0, 0.25])
                equal(out.float(), found[0].float(), "in place")
                refused(
                    lambda: torch.ops.mscclc.run_rows_(
                        x, torch.empty_like(x), "by_shape", names, [weight], [own], [0.0, 0.25]
                    ),
                    "the output of torch.bfloat16; it is of torch.float8_e4m3fn",
                )  # fmt: skip
            else:
                equal(found[1], stream, "residual")
                torch.testing.assert_close(found[0], wanted, rtol=1e-5, atol=1e-6)
        names, given = (names, [0.0, 0.25]) if typed else (names, [0.0])
        nothing = torch.ops.mscclc.run_rows(x[:0], "by_shape", names, [weight], [residual[:0]], given)
        assert [list(one.shape) for one in nothing] == [[0, COLUMNS], [0, COLUMNS]], "a batch of no rows"
        plans.unload("by_shape")


def gradients(ranks):
    """There are none: a backward pass says so, also where the graph was compiled; a forward pass needs none."""
    _load("rows_backward")
    words = "run_rows has no gradient", "torch.no_grad()"

    def layer(x, residual, weight):
        return torch.ops.mscclc.run_rows(x * 1, "rows_backward", NAMES, [weight], [residual], [1.0])[0] * 1

    for call in (layer, torch.compile(layer, fullgraph=True, backend="aot_eager")):
        for which in range(3):
            given = [one.requires_grad_(i == which) for i, one in enumerate(_given(2))]
            out = call(*given)
            equal(out, layer(*[one.detach() for one in given]), "forward")
            refused(lambda: out.sum().backward(), *words)
            assert all(one.grad is None for one in given)
    x, residual, weight = [one.requires_grad_() for one in _given(2)]
    with torch.no_grad():
        assert not layer(x, residual, weight).requires_grad
    out, total = torch.empty_like(x.detach()), torch.empty(2)
    q = torch.empty(2, COLUMNS, dtype=torch.float8_e4m3fn)
    names = ["weight", "residual", "q", "total", "scale"]

    def written(x, out, weight, residual):
        torch.ops.mscclc.run_rows_(x, out, "rows_backward", names, [weight], [residual, q, total], [0.5])
        return out * 1

    plain = [x.detach(), out, weight.detach(), residual.detach().clone()]
    for call in (written, torch.compile(written, fullgraph=True, backend="aot_eager")):
        for which in range(4):
            given = [one * one.clone().requires_grad_() if i == which else one for i, one in enumerate(plain)]
            refused(lambda: call(*given), "run_rows_ has no gradient", "torch.no_grad()")
            with torch.no_grad():
                assert not call(*given).requires_grad
    plans.unload("rows_backward")


def saved_for_backward(ranks):
    """A backward pass that needs what was written since is an error; without gradients there is nothing to say."""
    _load("rows_saved")
    names = ["weight", "residual", "q", "total", "scale"]

    def call(x, out, residual, weight):
        others = torch.empty(2, COLUMNS, dtype=torch.float8_e4m3fn), torch.empty(2)
        torch.ops.mscclc.run_rows_(x, out, "rows_saved", names, [weight], [residual, *others], [0.5])

    for which in range(2):
        x, residual, weight = _given(2)
        out, factor = torch.ones_like(x), torch.ones_like(x).requires_grad_()
        loss = (factor * (out, residual)[which]).sum()
        call(x, out, residual, weight)
        refused(loss.backward, "modified by an inplace operation")
    with torch.inference_mode():
        call(x, torch.empty_like(x), residual.clone(), weight)
    plans.unload("rows_saved")


def mistakes(ranks):
    _load("rows_wrong")
    x, residual, weight = _given(2)
    op, name = torch.ops.mscclc.run_rows, "rows_wrong"
    refused(lambda: op(x, name, NAMES, [weight], [residual], []), "3 names for 1 tensors")
    refused(lambda: op(x.double(), name, NAMES, [weight], [residual], [1.0]), "not of torch.float64")
    refused(lambda: op(x[0, :5], name, NAMES, [weight], [residual], [1.0]), "not whole rows of 16")
    refused(lambda: op(x.T.contiguous(), name, NAMES, [weight], [residual], [1.0]),
            "the input has the shape (16, 2), and should have (..., 16)")  # fmt: skip
    refused(lambda: op(x, name, NAMES, [weight], [residual.reshape(4, 8)], [1.0]),
            "the external 'residual' has the shape (4, 8), and should have (..., 16)")  # fmt: skip
    refused(lambda: op(x, name, NAMES, [torch.ones(32)[::2]], [residual], [1.0]), "'weight' is not contiguous")
    refused(lambda: op(x, name, NAMES, [weight[:8]], [residual], [1.0]), "'weight' has 8 elements")
    refused(lambda: op(x, name, NAMES, [weight], [residual[:1]], [1.0]), "'residual' has 1 rows")
    refused(lambda: op(x, name, ["weight", "r", "scale"], [weight], [residual], [1.0]), "'residual' is inout")
    plans.unload("rows_wrong")


CHECKS = [in_place, functional, compiled, checked, by_shape, gradients, saved_for_backward, mistakes]
