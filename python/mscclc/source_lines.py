"""Lines of Python programs in messages of the compiler."""

import linecache
import re

SEVERITY = r"(?:error|warning|note): "
_WITH_PLACE = re.compile(r"^(.+?):(\d+):(\d+): (?:error|warning): ")


def prefix(place):
    """'file:line:column: ' of a place (file, line), the column being that of the statement."""
    file, number = place
    return f"{file}:{number}:{_column(file, number)}: "


def location(place):
    """A place as an op of a program or of IR text says it."""
    file, number = place
    quoted = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'  @"{quoted}":{number}:{_column(file, number)}'


def excerpt(line):
    """Below an error or a warning: the line that it is about, and a mark."""
    found = _WITH_PLACE.match(line)
    text = linecache.getline(found[1], int(found[2])).rstrip() if found else ""
    return [text, " " * (int(found[3]) - 1) + "^"] if text else []


def _column(file, number):
    line = linecache.getline(file, number)
    return len(line) - len(line.lstrip()) + 1 if line.strip() else 1
