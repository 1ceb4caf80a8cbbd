"""The log."""

lines = []


class _Logger:
    def __init__(self, name):
        self._name = name

    def info_once(self, text, *arguments):
        """Of the same text the first only."""
        line = (self._name, text % arguments)
        if line not in lines:
            lines.append(line)


def init_logger(name):
    """The logger of a name."""
    return _Logger(name)
