"""Mistakes in programs that are found after the call that made them: they know its place."""


class ProgramError(RuntimeError):
    """A mistake in a program. `place` is (file, line) of the call that made it, or None."""

    def __init__(self, message, place=None):
        super().__init__(message)
        self.place = place

    def __str__(self):
        message = super().__str__()
        return message if self.place is None else f"{self.place[0]}:{self.place[1]}: {message}"

    @property
    def message(self):
        """The message without its place."""
        return super().__str__()
