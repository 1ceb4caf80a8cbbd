"""What passes over compiled graphs share: how torch.compile takes them, and when it may keep what they made."""

import functools
import hashlib
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import torch
import torch.distributed as dist
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.fx import Graph, GraphModule


class Left(NamedTuple):
    """A collective that a pass leaves as it was."""

    name: str
    why: str


class GraphPass(CustomGraphPass):
    """A pass. For one thread at a time. It takes functional graphs of ATen ops with shapes, as Inductor has them
    after gradients: not those of `pre_grad_custom_pass`."""

    def change(self, graph: Graph) -> None:
        """Changes a graph; of each pass its own."""
        raise NotImplementedError

    def options(self) -> str:
        """What the result depends on besides the graph; of each pass its own."""
        raise NotImplementedError

    def __call__(self, graph: Graph) -> None:
        """Changes a graph, and checks it."""
        self.change(graph)
        graph.lint()
        if graph.owning_module is not None:
            graph.owning_module.recompile()

    def uuid(self) -> str:
        """What compiled code depends on: the package's sources, the options, and what groups there are."""
        return f"{_sources()} {type(self).__module__}.{type(self).__qualname__} {self.options()} {_group_sizes()}"

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


def _group_sizes():
    """Of this process's groups by name: ops in graphs have them, and groups of one rank are left."""
    known = dist.distributed_c10d._world.pg_names if dist.is_available() else {}
    return sorted((name, group.size()) for group, name in known.items())


@functools.lru_cache(maxsize=None)
def _sources():
    """Of all passes and of what they put into graphs."""
    digest = hashlib.sha256(torch.__version__.encode())
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in ("fusion", "overlap"):
        for name in sorted(os.listdir(os.path.join(here, folder))):
            if name.endswith(".py"):
                with open(os.path.join(here, folder, name), "rb") as file:
                    digest.update(file.read())
    return digest.hexdigest()
