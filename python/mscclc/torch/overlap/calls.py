"""What an op needs to know of a call's sizes, strides and types, worked out once: a call that comes again finds it.

All that an op checks of its arguments depends on what is in key_of(), so a call whose key is known has passed. Looked
at in each call is what does not: where tensors lie, and whether the group is still there (objects.known()).
"""

from typing import Any, Callable, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch._C import _dispatch_keys

from ..._overlap import Shape
from ..dtypes import DTYPE_OF, EIGHT_BITS
from . import shapes
from .memory import taker
from .objects import ObjectFinder, Run, address_of, who_multiplies

PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
_Tensors = Sequence[torch.Tensor]


def key_of(
    options: Tuple[Any, ...], lists: Sequence[Sequence[Optional[torch.Tensor]]], only: Optional[FrozenSet[int]] = None
) -> Optional[Tuple[Any, ...]]:
    """Equal for calls that differ only in memory. `options`: the op's name first, and no lists; their types count, too,
    as 0.0 is equal to 0. None: a tensor is not of PLAIN_TYPES, or its keys of torch's dispatcher are not in `only`."""
    found = [options, tuple(map(type, options))]
    for tensors in lists:
        found.append(len(tensors))
        for one in tensors:
            if one is None:
                found.append(None)
                continue
            # Another type may see that it is asked.
            if only is not None and (type(one) not in PLAIN_TYPES or _dispatch_keys(one).raw_repr() not in only):
                return None
            found += (one.shape, one.stride(), one.dtype, one.device)
    return tuple(found)


def options_of(shape: Optional[Sequence[int]]) -> Tuple[Any, ...]:
    """A shape that need not be given, as the last of a key's options: no two have the same."""
    return (None,) if shape is None else (len(shape), *shape)


class How(NamedTuple):
    """Options that all ops have."""

    ranks: int
    backend: str
    chunks: int
    budget: int
    gemm: str


_Types = Tuple[str, str, str]  # the library's names of those of A, B and what is made


def _where(tensors, copied):
    """Tensors as the library takes them. `copied`: which have gaps."""
    return [shapes.ready(one) if gaps or one.data_ptr() % 16 else one for one, gaps in zip(tensors, copied)]


class _Weights:
    """How weights are given: all as they lie in memory, by columns or by rows, or all by rows; of 8 bits by columns."""

    def __init__(self, Bs: _Tensors):
        eight = Bs[0].dtype in EIGHT_BITS
        self.by_columns = eight or all(B.t().is_contiguous() and not B.is_contiguous() for B in Bs)
        self._copied = [not (B.t() if self.by_columns else B).is_contiguous() for B in Bs]
        self.lie = not any(self._copied)

    def where(self, Bs: _Tensors) -> List[torch.Tensor]:
        """Tensors whose memory has them."""
        if self.lie and not any([B.data_ptr() % 16 for B in Bs]):
            return Bs
        if self.by_columns:
            return [shapes.ready(B.t()) if gaps or B.data_ptr() % 16 else B for B, gaps in zip(Bs, self._copied)]
        return _where(Bs, self._copied)


def _lie_ready(tensors):
    """Addresses of tensors without gaps, if the library can take all where they are."""
    found = [*map(address_of, tensors)]
    return None if any(map(_REST, found)) else found


_REST = (15).__and__  # of an address, divided by 16


class Gather:
    """A gather, or an exchange, and the products after it."""

    by_addresses = True  # all that is given, where it lies ready

    def __init__(
        self, kind: str, A: torch.Tensor, Bs: _Tensors, biases: _Tensors, dim: int, types: _Types, how: How
    ):  # fmt: skip
        ranks, *division, gemm = how
        self._dim, self._flat = dim, dim == 0 and A.is_contiguous()
        leading = shapes.shape_of_rows(A, dim, A.shape[dim] * (ranks if kind == "allgather_gemm" else 1))
        m = 1
        for size in leading:
            m *= size
        k, columns = A.shape[-1], tuple(B.shape[1] for B in Bs)
        self._weights, self._biases = _Weights(Bs), [not one.is_contiguous() for one in biases]
        self._direct = self.by_addresses and self._flat and self._weights.lie and not any(self._biases)
        shape = Shape(kind, m, k, columns, *types, self._weights.by_columns, bool(biases), None, *division)
        self.place = ObjectFinder(shape, who_multiplies(gemm, shape, A.device))
        self.empty = m == 0 or k == 0 or 0 in columns
        self._leading = leading
        rows = leading if dim == 0 else [m]  # no view is needed then
        self._take_whole, self.dtype = taker((*rows, k), A.dtype, A.device), DTYPE_OF[types[2]]
        self._take_outs = [taker((*rows, n), self.dtype, A.device) for n in columns]

    def run(self, of: Any, *given: Any) -> Tuple[Optional[torch.Tensor], List[torch.Tensor]]:
        """What the op gives for a call that has run before. `of`: its session, `given`: as tensors() takes them."""
        if self._direct:
            A, Bs, biases, return_A = given
            found = _lie_ready((A, *Bs, *biases))
            if found is not None:
                outs, whole = [take() for take in self._take_outs], self._take_whole() if return_A else None
                end = 1 + len(outs)
                of.run_at(self.place, (found[0], found[1:end], [*map(address_of, outs)], found[end:], None, (),
                                       None if whole is None else whole.data_ptr()))  # fmt: skip
                return whole, outs
        run = self.tensors(*given)
        of.run(self.place, run)
        return self.results(run)

    def again(self, of: Any) -> Callable[..., Any]:
        """run() with the op's arguments."""
        return lambda A, Bs, *place, return_A, **_: self.run(of, A, Bs, place[-1], return_A)

    def tensors(self, A: torch.Tensor, Bs: _Tensors, biases: _Tensors, return_A: bool) -> Run:
        """Those of a run, with memory for its results."""
        rows = A if self._flat and not A.data_ptr() % 16 else shapes.ready(shapes.rows_of(A, self._dim))
        return Run(
            rows, self._weights.where(Bs), [take() for take in self._take_outs],
            _where(biases, self._biases) if biases else (), self._take_whole() if return_A else None,
        )  # fmt: skip

    def results(self, run: Run) -> Tuple[Optional[torch.Tensor], List[torch.Tensor]]:
        """What the op gives."""
        if self._dim == 0:
            return run.gathered, list(run.out)
        whole, *outs = [
            None if one is None else shapes.with_dimensions(one, self._leading, self._dim)
            for one in (run.gathered, *run.out)
        ]
        return whole, outs


class Sum:
    """A product, and a sum over ranks of it, whole ("gemm_allreduce") or a part ("gemm_reducescatter")."""

    by_addresses = True  # as in Gather

    def __init__(
        self, kind: str, A: torch.Tensor, B: torch.Tensor, bias: Optional[torch.Tensor], mean: bool, dim: int,
        types: _Types, how: How,
    ):  # fmt: skip
        ranks, *division, gemm = how
        scatters = kind == "gemm_reducescatter"
        self._mean = ranks if mean else 0
        self._columns = scatters and shapes.is_last(A, dim)
        self._dim, self._flat = dim, dim == 0 and A.is_contiguous() and not self._columns
        a, b = self._operands(A, B)
        self._weights = _Weights([b])
        self._later = bias is not None and (self._columns or mean)
        given = bias is not None and not self._later
        self._bias = [given and not bias.is_contiguous()]
        self._direct = self.by_addresses and self._flat and self._weights.lie and not any(self._bias)
        shape = Shape(kind, *a.shape, (b.shape[1],), *types, self._weights.by_columns, given, None, *division,
                      reduce_op="avg" if mean else "sum")  # fmt: skip
        self.place = ObjectFinder(shape, who_multiplies(gemm, shape, A.device))
        self.empty = 0 in (*a.shape, b.shape[1])
        parts = ranks if scatters else 1
        if self._columns:
            self._leading = list(A.shape[:-1])
        else:
            self._leading = shapes.shape_of_rows(A, dim, A.shape[dim] // parts)
        rows = self._leading if dim == 0 and not self._columns else [a.shape[0] // parts]
        self.dtype = DTYPE_OF[types[2]]
        self._take_out = taker((*rows, b.shape[1]), self.dtype, A.device)

    def _operands(self, A, B):
        # Columns that are scattered are rows of the product of both transposed, which lies so already.
        return (B.t(), A.flatten(0, -2).t()) if self._columns else (shapes.rows_of(A, self._dim), B)

    def run(self, of: Any, *given: Any) -> torch.Tensor:
        """What the op gives for a call that has run before. `of`: its session, `given`: as tensors() takes them, the
        bias the last."""
        if self._direct:
            A, B, bias = given
            found = _lie_ready((A, B, bias) if self.place.shape.bias else (A, B))
            if found is not None:
                out = self._take_out()
                of.run_at(self.place, (found[0], found[1:2], (out.data_ptr(),), found[2:], None, (), None))
                return self._finished(out, bias)
        run = self.tensors(*given)
        of.run(self.place, run)
        return self.result(run, given[-1])

    def again(self, of: Any) -> Callable[..., Any]:
        """run() with the op's arguments."""
        return lambda A, B, *place, **_: self.run(of, A, B, place[-1])

    def tensors(self, A: torch.Tensor, B: torch.Tensor, bias: Optional[torch.Tensor]) -> Run:
        """Those of a run, with memory for its result."""
        a, b = (A, B) if self._flat and not A.data_ptr() % 16 else self._operands(A, B)
        return Run(
            a if a is A else shapes.ready(a), self._weights.where([b]), [self._take_out()],
            _where([bias], self._bias) if self.place.shape.bias else (),
        )  # fmt: skip

    def result(self, run: Run, bias: Optional[torch.Tensor]) -> torch.Tensor:
        """What the op gives."""
        return self._finished(run.out[0], bias)

    def _finished(self, out, bias):
        if self._mean:
            out.div_(self._mean)
        if self._columns:
            out = out.t().contiguous()
        if self._later:
            out.add_(bias)
        if self._columns:
            return out.view(*self._leading, out.shape[-1])
        return out if self._dim == 0 else shapes.with_dimensions(out, self._leading, self._dim)
