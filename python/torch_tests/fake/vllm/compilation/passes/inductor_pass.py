"""What vLLM takes as a pass after gradients."""

from torch._inductor.custom_graph_pass import CustomGraphPass


class InductorPass(CustomGraphPass):
    """A pass over a graph that is changed in place."""

    def uuid(self):
        return "of its source"

    def is_applicable_for_range(self, compile_range):
        """Whether it is for graphs of so many tokens."""
        return True
