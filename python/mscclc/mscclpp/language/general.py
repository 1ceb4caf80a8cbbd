"""The plan of the program that is being traced."""

from .internal.globals import get_program

__all__ = ["JSON", "get_program"]


def JSON() -> str:
    """The plan of the current program, indented by 2."""
    return get_program().to_json()
