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

import logging
import os
from typing import Any, Callable, List, Mapping, NamedTuple

from torch.fx import Graph

from .. import orders
from ..graph_pass import GraphPass, Left
from . import region as regions
from .op import calls, close
from .operators import TABLE, name_of
from .translation import Unsupported

__all__ = ["Left", "Replaced", "Report", "RowFusion", "calls", "close"]

_log = logging.getLogger("mscclc.fusion")


class Replaced(NamedTuple):
    """A sum that has become one op with a function of its rows."""

    name: str  # of the node
    group: str
    columns: int
    function: str  # as rows.md writes it


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


class RowFusion(GraphPass):
    """The pass. For one thread at a time."""

    sums: Mapping[str, Callable[..., Any]] = regions.SUMS
    operators: Mapping[str, Callable[..., Any]] = TABLE

    def __init__(self, max_bytes: int = 16 << 20):
        """`max_bytes`: of a sum that is fused at most; plans take a multiple of it of a device's memory. Where rows
        are known when compiled, larger sums are left; else each call decides (`calls()`)."""
        if not isinstance(max_bytes, int) or max_bytes < 1:
            raise ValueError(f"max_bytes is a number of bytes, not {max_bytes!r}")
        self.max_bytes = max_bytes
        self._report = Report([], [])

    def change(self, graph: Graph) -> None:
        """Fuses what it can."""
        for node in list(graph.nodes):
            name = name_of(node) if node.op == "call_function" else ""
            if name in self.sums:
                self._replace(node, self.sums[name])

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

    def options(self) -> str:
        """The sizes that are fused, and the contracts of sums, for which they may not be."""
        return f"{self.max_bytes} {os.environ.get('MSCCLC_ORDER')} {orders.settings()}"
