"""What goes wrong: programs, runs, calls of the package, and calls of the library."""

import re
from typing import List, NamedTuple, Optional

_LINE = re.compile(
    r"^(?:(?P<file>[^\n]*?):(?:(?P<line>\d+):(?P<column>\d+):)? )?"
    r"(?P<severity>error|warning|note): (?P<message>.*)$",
    re.MULTILINE,
)


class Diagnostic(NamedTuple):
    """One error, warning or note; the place is None where there is none."""

    severity: str
    message: str
    file: Optional[str] = None
    line: Optional[int] = None
    column: Optional[int] = None


class UsageError(Exception):
    """The call is wrong: a program that the compiler cannot read, a file without an end, an option that
    does not exist. Files that Python cannot open are its own OSError."""


class CompileError(Exception):
    """A program or plan is wrong. As a string it is what the compiler prints."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text = text.rstrip("\n")

    def __str__(self) -> str:
        return self.text

    @property
    def diagnostics(self) -> List[Diagnostic]:
        """The errors, warnings and notes, in order."""
        return diagnostics_in(self.text)


class RunError(Exception):
    """A run gave wrong data or hung. As a string it is the table and what the compiler prints."""


class LibraryError(Exception):
    """A call of libmscclc has failed; `code` is its result (mscclc.h)."""

    def __init__(self, code: int, text: str):
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return self.text


def diagnostics_in(text: str) -> List[Diagnostic]:
    """The diagnostics of a text that the compiler has printed."""
    return [
        Diagnostic(
            m["severity"],
            m["message"],
            m["file"],
            int(m["line"]) if m["line"] else None,
            int(m["column"]) if m["column"] else None,
        )
        for m in _LINE.finditer(text)
    ]
