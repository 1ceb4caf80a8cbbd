"""Ops by name, and what computes them."""


class IrOp:
    """An op; the first of its priority that can computes it."""

    registry = {}

    def __init__(self, name):
        self.priority = ["native"]
        IrOp.registry[name] = self

    def get_priority(self):
        """Names of implementations."""
        return list(self.priority)
