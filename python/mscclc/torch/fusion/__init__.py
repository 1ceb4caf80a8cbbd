"""All-reduces and what a compiled model computes of their rows (residual, norm, quantisation), as one op.

    from mscclc.torch.fusion import RowFusion

    fusion = RowFusion()
    model = torch.compile(model, options={"post_grad_custom_post_pass": fusion})      # by Inductor
    model = torch.compile(model, backend=fusion.backend)                              # without it
    fusion(graph_module.graph)                                                        # a graph of ATen ops
    print(fusion.report())

A function is taken from the graph op by op, with every rounding that the graph has: nothing is replaced that would
be computed otherwise. What each sum became, and why others were left, is in the report. All ranks must compile the
same model with the same options.
"""

import functools
import hashlib
import logging
import os
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.fx import Graph, GraphModule

from . import region as regions
from .op import calls, close
from .operators import TABLE, name_of
from .translation import Unsupported

__all__ = ["Left", "Replaced", "Report", "RowFusion", "calls", "close"]

_log = logging.getLogger("mscclc.fusion")
_FOLDER = os.path.dirname(os.path.abspath(__file__))


class Replaced(NamedTuple):
    """A sum that has become one op with a function of its rows."""

    name: str  # of the node
    group: str
    columns: int
    function: str  # as rows.md writes it


class Left(NamedTuple):
    """A sum that stays as it was."""

    name: str
    why: str


class Report(NamedTuple):
    """What a pass has done to all its graphs so far."""

    replaced: List[Replaced]
    left: List[Left]

    def __str__(self) -> str:
        lines = [f"{one.name}: fused with {_ops(one.function)} ops on rows of {one.columns}" for one in self.replaced]
        lines += [f"{one.name}: left, {one.why}" for one in self.left]
        return "\n".join([f"{len(self.replaced)} all-reduces fused, {len(self.left)} left", *lines])


def _ops(function):
    return function.count("  let ")


class RowFusion(CustomGraphPass):
    """The pass. For one thread at a time. It takes functional graphs of ATen ops with shapes, as Inductor has them
    after gradients: not those of `pre_grad_custom_pass`."""

    sums: Mapping[str, Callable[..., Any]] = regions.SUMS
    operators: Mapping[str, Callable[..., Any]] = TABLE

    def __init__(self, max_bytes: int = 2 << 20):
        """`max_bytes`: of a sum that is fused at most; plans take a multiple of it of a device's memory. Where rows
        are known when compiled, larger sums are left; else each call decides (`calls()`)."""
        if not isinstance(max_bytes, int) or max_bytes < 1:
            raise ValueError(f"max_bytes is a number of bytes, not {max_bytes!r}")
        self.max_bytes = max_bytes
        self._report = Report([], [])

    def __call__(self, graph: Graph) -> None:
        """Changes a graph."""
        for node in list(graph.nodes):
            name = name_of(node) if node.op == "call_function" else ""
            if name in self.sums:
                self._replace(node, self.sums[name])
        graph.lint()
        if graph.owning_module is not None:
            graph.owning_module.recompile()

    def _replace(self, node, sum_of):
        name = node.name
        try:
            region = regions.find(sum_of(node), self.operators, self.max_bytes)
            function = regions.result_function(region)[0]
            regions.replace(region, self.max_bytes)
            self._report.replaced.append(Replaced(name, region.sum.group, function.columns, function.text("fused")))
            _log.debug("%s is fused:\n%s", name, self._report.replaced[-1].function)
        except Unsupported as error:
            self._report.left.append(Left(name, str(error)))
            _log.debug("%s is left: %s", name, error)

    def report(self) -> Report:
        """What was replaced so far, and what was not, and why. Code that Inductor had kept is not in it."""
        return self._report

    def uuid(self) -> str:
        """What compiled code depends on: the package's sources, and the options."""
        return f"{_sources()} {type(self).__module__}.{type(self).__qualname__} {self.max_bytes}"

    def backend(
        self, module: GraphModule, inputs: List[Any], options: Optional[Dict[str, Any]] = None
    ) -> Callable[..., Any]:
        """A backend of torch.compile that runs graphs op by op, after the pass; for tests, and where Inductor is not
        wanted."""
        from functorch.compile import make_boxed_func
        from torch._dynamo.backends.common import aot_autograd
        from torch._inductor.decomposition import select_decomp_table

        def compiled(graph: GraphModule, _: List[Any]) -> Callable[..., Any]:
            self(graph.graph)
            return make_boxed_func(graph.forward)

        # As Inductor's, graphs write what the program writes.
        made = aot_autograd(
            fw_compiler=compiled, decompositions=select_decomp_table(), keep_inference_input_mutations=True
        )
        return made(module, inputs)


@functools.lru_cache(maxsize=None)
def _sources():
    digest = hashlib.sha256(torch.__version__.encode())
    for name in sorted(os.listdir(_FOLDER)):
        if name.endswith(".py"):
            with open(os.path.join(_FOLDER, name), "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()
