"""Plans with row functions by name, as custom ops that torch.compile takes.

    mscclc.torch.plans.load("norm", plan, group, max_bytes=1 << 20, dtype="bf16")
    torch.ops.mscclc.run_rows_(x, out, "norm", ["weight", "residual", "eps"], [weight], [residual], [1e-5])
    out, residual = torch.ops.mscclc.run_rows(x, "norm", ["weight", "residual", "eps"], [weight], [residual], [1e-5])

`names` are those of the plan's externals: of the tensors that are only read, then of those that are written, then of the
scalars that are numbers. `run_rows_` changes what is written; `run_rows` changes nothing, and gives the output and what
is written anew: of externals that are read, too (`inout`), in the order of their names, then of the others (`out`), in the
order of the plan. Output and externals have as many rows as the input, or of a reducescatter those of one rank.

Neither has a gradient: `run_rows_` is an error where what it reads or writes requires one, and backward() through a
result of `run_rows` is.
"""

from typing import List

import torch

from ..buffers import needs_rows
from ..errors import UsageError
from .dtypes import DTYPE_OF, NAME_OF, WIDE
from .plans import _plan, mark_written, no_gradient, refuse_gradients, run_on_stream

_library = torch.library.Library("mscclc", "FRAGMENT")
_TORCH = {**DTYPE_OF, "e8m0": getattr(torch, "float8_e8m0fnu", torch.uint8)}


def _bits(tensor):
    """The same memory as bytes, where others have no name for the type."""
    return tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor


def _dtype_of(input):
    if input.dtype not in WIDE:
        raise UsageError(f"row functions are computed of f32, f16 and bf16, not of {input.dtype}")
    return NAME_OF[input.dtype]


def _output_dtype(name, input):
    type = _plan(name)[1]._rows.output_type
    return _TORCH[_dtype_of(input) if type == "T" else type]


def _check_names(names, read, written, values):
    if len(names) != len(read) + len(written) + len(values):
        raise UsageError(
            f"{len(names)} names for {len(read)} tensors that are read, {len(written)} that are"
            f" written and {len(values)} numbers"
        )


def _run_rows_(input, output, name, names, read, written, values):
    _run_into(input, output, name, names, read, written, values)
    mark_written(output, *written)


def _run_into(input, output, name, names, read, written, values):
    _check_names(names, read, written, values)
    wanted = _output_dtype(name, input)
    if output.dtype != wanted:
        raise UsageError(f"the input is of {input.dtype}, the output of {output.dtype}; it is of {wanted}")
    tensors = [one.detach() for one in (*read, *written)]
    externals = {**dict(zip(names, map(_bits, tensors))), **dict(zip(names[len(tensors):], values))}
    run_on_stream(_plan(name), input, _bits(output), tensors, dtype=_dtype_of(input), externals=externals)


def _made(input, name, names, read, inout):
    """Output, and externals that are only written, as tensors."""
    rows = _plan(name)[1]._rows
    if rows.columns == 0 or input.numel() % rows.columns != 0:
        raise UsageError(f"{input.numel()} elements are not whole rows of {rows.columns} columns")
    needs_rows("the input", input.shape, rows.columns)
    dtype, shape = _dtype_of(input), list(input.shape)
    if rows.collective == "reducescatter":
        if not shape or shape[0] % rows.ranks != 0:
            raise UsageError(f"a first dimension of {shape[:1]} is no multiple of {rows.ranks} ranks")
        shape[0] //= rows.ranks
    made = [input.new_empty(shape, dtype=_output_dtype(name, input))]
    count = made[0].numel() // rows.columns
    given = set(names[len(read):len(read) + len(inout)])
    out = []
    for one in rows.externals:
        if not one.written or one.name in given:
            continue
        if one.use != "out" or one.sharded:
            how = one.use + ", sharded" * one.sharded
            raise UsageError(f"the external '{one.name}' is {how}: run_rows_ takes it")
        out.append(one.name)
        type = _TORCH[dtype if one.type == "T" else one.type]
        made.append(input.new_empty([count, one.columns] if one.has_rows else [one.columns], dtype=type))
    return made, out


def _run_rows(input, name, names, read, inout, values) -> List[torch.Tensor]:
    _check_names(names, read, inout, values)
    made, out = _made(input, name, names, read, inout)
    changed = [one.clone(memory_format=torch.contiguous_format) for one in inout]
    tensors = len(read) + len(inout)
    all_names = [*names[:tensors], *out, *names[tensors:]]
    _run_into(input, made[0], name, all_names, read, [*changed, *made[1:]], values)
    return [made[0], *changed, *made[1:]]


def _fake_run_rows(input, name, names, read, inout, values):
    made, _ = _made(input, name, names, read, inout)
    return [made[0], *[torch.empty_like(one, memory_format=torch.contiguous_format) for one in inout],
            *made[1:]]  # fmt: skip


def _save(ctx, inputs, output):
    input, _, _, read, inout, _ = inputs
    ctx.shapes = [input.shape, [one.shape for one in read], [one.shape for one in inout]]


def _gradients(ctx, gradients):
    """Those of another op, as a graph with gradients may be compiled, and then only its forward part run."""
    given = next(one for one in gradients if one is not None)
    input, read, inout = ctx.shapes
    of = torch.ops.mscclc.run_rows_gradient
    return of(given, input), None, None, [of(given, one) for one in read], [of(given, one) for one in inout], None


def _no_gradient(given, shape):
    raise no_gradient("run_rows")


_library.define("run_rows_gradient(Tensor given, SymInt[] shape) -> Tensor")
_library.define(
    "run_rows_(Tensor input, Tensor(a!) output, str name, str[] names, Tensor[] read,"
    " Tensor(b!)[] written, float[] values) -> ()"
)
_library.define(
    "run_rows(Tensor input, str name, str[] names, Tensor[] read, Tensor[] inout, float[] values)"
    " -> Tensor[]"
)
for _key in ("CPU", "CUDA"):
    _library.impl("run_rows_", _run_rows_, _key)
    _library.impl("run_rows", _run_rows, _key)
    _library.impl("run_rows_gradient", _no_gradient, _key)
torch.library.register_fake("mscclc::run_rows_", lambda *_: None, lib=_library)
refuse_gradients(_library, "run_rows_")
torch.library.register_fake("mscclc::run_rows", _fake_run_rows, lib=_library)
torch.library.register_fake(
    "mscclc::run_rows_gradient", lambda given, shape: given.new_empty(shape), lib=_library
)
torch.library.register_autograd("mscclc::run_rows", _gradients, setup_context=_save, lib=_library)
