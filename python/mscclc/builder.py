"""Programs written in Python: the language's statements as calls, loops and parameters as Python's.

    program = Program("exchange", "allgather", ranks=2)
    for r in range(2):
        rank = program.rank(r)
        to_peer = rank.memory("to_peer", 1 - r)
        with rank.tb(0):
            rank.copy(rank.output[r], rank.input)
            rank.put(to_peer.at("output")[r], rank.input)
            rank.signal(to_peer)
            rank.wait(to_peer)
    plan = program.compile()

Each call is one statement of the language (docs/language.md), so what it means, and what is wrong,
is said there; messages name the line of the call.
"""

import contextlib
import re
import sys
from typing import Any, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._tool import call
from .errors import CompileError
from .plan import Plan
from .source_lines import SEVERITY, excerpt, location, prefix

Place = Tuple[str, int]
Index = Union[int, slice]
Dimension = Union[int, Sequence[int]]
Option = Union[bool, int, str, Sequence[int]]

_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_WORDS = re.compile(r'[\w.,\[\]" -]*\Z', re.ASCII)
_IN_TEXT = re.compile(rf"^-:(\d+):\d+: ({SEVERITY})")
_MESSAGE = re.compile(rf"^(?:.*?: )?{SEVERITY}")


class _InProgram:
    """Something that the program's text names."""

    __slots__ = ("_text",)

    def __init__(self, text: str):
        self._text = text

    def __str__(self) -> str:
        return self._text


class Buffer(_InProgram):
    """A buffer of a rank, or, through a channel, of the rank at its other end.

    `buffer[i]`, `buffer[i, j]` and `buffer[a:b]` are chunks of it, `buffer` is all of it.
    """

    __slots__ = ()

    def __getitem__(self, index: Union[Index, Tuple[Index, ...]]) -> "Chunks":
        indices = index if isinstance(index, tuple) else (index,)
        return Chunks(f"{self._text}[{', '.join(map(_index, indices))}]")


class Chunks(_InProgram):
    """Chunks of a buffer: an operand."""

    __slots__ = ()


class Channel(_InProgram):
    """A rank's end of a channel."""

    __slots__ = ()

    def at(self, buffer: str) -> Buffer:
        """The buffer of this name at the other end."""
        return Buffer(f"{self._text}.{_name(buffer)}")


class Semaphore(_InProgram):
    """A semaphore of a rank."""

    __slots__ = ()


class Flags(_InProgram):
    """An array of flags that the caller gives to each call; `flags[c]` is one of them."""

    __slots__ = ()

    def __getitem__(self, index: int) -> "Flag":
        return Flag(f"{self._text}[{int(index)}]")


class Flag(_InProgram):
    """A flag: an operand of `await_` and `notify`."""

    __slots__ = ()


Operand = Union[Buffer, Chunks]


class Rank:
    """The body of a rank: what it owns, and its ops in their order."""

    def __init__(self, rank: int):
        self.rank = rank
        self.input = Buffer("input")
        self.output = Buffer("output")
        self._owned: List[Tuple[str, Place]] = []
        self._body: List[Tuple[str, Place]] = []
        self._depth = 1

    # What the rank owns.

    def buffer(self, name: str, *dimensions: Dimension, **options: Option) -> Buffer:
        """Scratch: a dimension is a number of chunks, or the indices of a list."""
        shape = ", ".join(_value(dimension) for dimension in dimensions)
        self._own(f"buffer {_name(name)}[{shape}]{_options(options)}")
        return Buffer(name)

    def memory(self, name: str, peer: int, key: Any = None, to: Optional[str] = None) -> Channel:
        """A channel to the memory of another rank; `key` distinguishes those of one name."""
        return self._channel("memory", name, str(int(peer)), key, to)

    def port(
        self, name: str, peer: int, key: Any = None, to: Optional[str] = None, **options: Option
    ) -> Channel:
        """A channel to another rank over a proxy, as in `port("down", 1, to="up", credits=2)`."""
        return self._channel("port", name, str(int(peer)), key, to, _options(options))

    def switch(self, name: str, ranks: Sequence[int], key: Any = None) -> Channel:
        """A channel over a switch to all of these ranks at once."""
        return self._channel("switch", name, _value(ranks), key, None)

    def semaphore(self, name: str, initial: int = 0, key: Any = None) -> Semaphore:
        """A semaphore, which orders blocks of this rank."""
        self._own(f"semaphore {_name(name)}{_key(key)} = {int(initial)}")
        return Semaphore(name + _key(key))

    # Where ops run.

    def tb(self, block: int) -> "contextlib.AbstractContextManager[None]":
        """Ops inside run in this thread block."""
        return self._inside(f"tb {int(block)}")

    def group(self, blocks: Iterable[int]) -> "contextlib.AbstractContextManager[None]":
        """Ops inside are shared by these thread blocks."""
        return self._inside(f"group {_value(list(blocks))}")

    def pipeline(self, **options: Option) -> "contextlib.AbstractContextManager[None]":
        """Ops inside run once for each unit: `pipeline(unit="64KiB")`."""
        return self._inside(f"pipeline{_options(options)}")

    # Ops.

    def op(
        self,
        name: str,
        destinations: Sequence[Any] = (),
        sources: Sequence[Any] = (),
        **options: Option,
    ) -> None:
        """Any op of docs/ops.md."""
        text = " ".join(filter(None, [_name(name), ", ".join(map(_operand, destinations))]))
        if sources:
            text += " <- " + ", ".join(map(_operand, sources))
        words = ", ".join(_option(o, value) for o, value in options.items() if value is not False)
        place = _caller()
        self._write(f"{text} {words}".rstrip() + location(place), place)

    def copy(self, destination: Operand, source: Operand) -> None:
        """Moves a chunk within the rank."""
        self.op("copy", [destination], [source])

    def put(self, destination: Operand, source: Operand) -> None:
        """Writes a chunk at the other end of a channel."""
        self.op("put", [destination], [source])

    def get(self, destination: Operand, source: Operand) -> None:
        """Reads a chunk from the other end of a channel."""
        self.op("get", [destination], [source])

    def reduce(self, destination: Operand, *sources: Operand, **options: Option) -> None:
        """Adds up chunks in this order, as the call says or by `op="sum"`; as a tree if `tree=True`,
        or the exact sum if `exact=True`."""
        self.op("reduce", [destination], sources, **options)

    def read_reduce(self, destination: Operand, *sources: Operand, **options: Option) -> None:
        """Adds up a chunk of the rank and chunks at other ends."""
        self.op("read_reduce", [destination], sources, **options)

    def copy_packets(self, destination: Operand, source: Operand) -> None:
        """Writes a chunk as packets into scratch of the rank."""
        self.op("copy_packets", [destination], [source])

    def unpack_packets(self, destination: Operand, source: Operand) -> None:
        """Waits for packets and copies their data."""
        self.op("unpack_packets", [destination], [source])

    def put_packets(self, destination: Operand, source: Operand) -> None:
        """Writes a chunk as packets at the other end of a channel."""
        self.op("put_packets", [destination], [source])

    def read_put_packets(self, destination: Operand, source: Operand) -> None:
        """Waits for packets and forwards them."""
        self.op("read_put_packets", [destination], [source])

    def reduce_packets(self, destination: Operand, *sources: Operand, **options: Option) -> None:
        """Adds up a chunk and packets in this order."""
        self.op("reduce_packets", [destination], sources, **options)

    def switch_reduce(self, destination: Operand, source: Operand, **options: Option) -> None:
        """Adds up a chunk over all ranks of a switch."""
        self.op("switch_reduce", [destination], [source], **options)

    def switch_broadcast(self, destination: Operand, source: Operand) -> None:
        """Stores a chunk to all ranks of a switch."""
        self.op("switch_broadcast", [destination], [source])

    def signal(self, *channels: Channel, relaxed: bool = False) -> None:
        """Adds one at the partner of each channel."""
        self.op("signal", channels, relaxed=relaxed)

    def wait(self, *channels: Channel, relaxed: bool = False) -> None:
        """Takes one at this end of each channel."""
        self.op("wait", channels, relaxed=relaxed)

    def flush(self, *channels: Channel) -> None:
        """Waits until the sources of earlier puts may change."""
        self.op("flush", channels)

    def release(self, *semaphores: Semaphore) -> None:
        """Adds one to each semaphore."""
        self.op("release", semaphores)

    def acquire(self, *semaphores: Semaphore) -> None:
        """Takes one from each semaphore."""
        self.op("acquire", semaphores)

    def await_(self, *flags: Flag) -> None:
        """Waits until the other side has raised these flags; `await` is a word of Python."""
        self.op("await", flags)

    def notify(self, *flags: Flag) -> None:
        """Raises these flags for the other side."""
        self.op("notify", flags)

    def sync(self) -> None:
        """The threads of the block meet."""
        self.op("sync")

    def barrier(self, blocks: Iterable[int]) -> None:
        """These thread blocks meet."""
        place = _caller()
        self._write(f"barrier {_value(list(blocks))}" + location(place), place)

    # The text.

    def _channel(self, kind, name, peer, key, to, options=""):
        end = "" if to is None else f" to {to}"
        if not _WORDS.match(end):
            raise ValueError(f"{to!r} is not an end of a channel, as in 'prev' or 'up[1]'")
        self._own(f"channel {_name(name)}{_key(key)} = {kind}({peer}){end}{options}")
        return Channel(name + _key(key))

    @contextlib.contextmanager
    def _inside(self, opening: str) -> Iterator[None]:
        self._write(opening + " {", _caller())
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self._write("}", _caller())

    def _own(self, text):
        self._owned.append(("  " + text, _caller()))

    def _write(self, text, place):
        self._body.append(("  " * self._depth + text, place))


class Program:
    """A program, rank by rank."""

    def __init__(
        self,
        name: str,
        collective: str,
        ranks: int,
        *,
        select: Optional[Mapping[str, Option]] = None,
        launch: Optional[Mapping[str, Option]] = None,
        **contract: Option,
    ):
        place = _caller()
        self.ranks = int(ranks)
        self._head = [
            (f"program {_name(name)}", place),
            (f"collective {_name(collective)}({_pairs({'ranks': self.ranks, **contract})})", place),
        ]
        for word, options in (("select", select), ("launch", launch)):
            if options:
                self._head.append((f"{word} {_pairs(options)}", place))
        self._flags: List[Tuple[str, Place]] = []
        self._bodies = {}

    def rank(self, rank: int) -> Rank:
        """The body of a rank; the same each time."""
        if not 0 <= rank < self.ranks:
            raise ValueError(f"rank {rank} of {self.ranks} ranks, which begin with 0")
        return self._bodies.setdefault(rank, Rank(rank))

    def flags(
        self, name: str, count: int, of: str, after: Optional[Flags] = None, **options: Option
    ) -> Flags:
        """An array of flags of the "input" or of the "output", as in `flags("tiles", 4, of="input")`;
        `after` are those that the other side may wait for before it raises any of these."""
        if after is not None:
            options["after"] = str(after)
        words = _pairs({"of": of, **options})
        self._flags.append((f"external flags {_name(name)}[{int(count)}] {words}", _caller()))
        return Flags(name)

    def source(self) -> str:
        """The program in the language, unrolled."""
        return "".join(text + "\n" for text, _ in self._lines())

    def compile(
        self,
        *,
        target: Optional[str] = None,
        max_thread_blocks: Optional[int] = None,
        verify: bool = True,
    ) -> Plan:
        """The plan; raises CompileError as `mscclc.compile` does, at lines of Python."""
        options = [] if target is None else ["--target", target]
        if max_thread_blocks is not None:
            options += ["--max-thread-blocks", str(max_thread_blocks)]
        if not verify:
            options.append("--no-verify")
        try:
            plan, warnings = call("compile", "-", *options, text=self.source())
        except CompileError as error:
            raise CompileError(self._at_python(error.text)) from None
        return Plan(plan, self._at_python(warnings))

    def _lines(self):
        lines = [*self._head, *self._flags]
        for rank in range(self.ranks):
            body = self.rank(rank)
            lines.append((f"rank {rank} {{", self._head[0][1]))
            lines += body._owned + body._body
            lines.append(("}", self._head[0][1]))
        return lines

    def _at_python(self, messages):
        """Messages about the text, at the lines of the calls that wrote it."""
        places = [place for _, place in self._lines()]
        out = []
        for line in filter(_MESSAGE.match, messages.splitlines()):
            if found := _IN_TEXT.match(line):
                place = places[min(int(found[1]), len(places)) - 1]
                line = f"{prefix(place)}{found[2]}{line[found.end():]}"
            out += [line, *excerpt(line)]
        return "\n".join(out)


def _caller() -> Place:
    """The place of the call that came from outside of this file, and of Python's own."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _name(name):
    if not isinstance(name, str) or not _NAME.match(name):
        raise ValueError(f"{name!r} is not a name")
    return name


def _operand(operand):
    if not isinstance(operand, (Buffer, Chunks, Channel, Semaphore, Flag)):
        raise TypeError(
            f"{operand!r} is not an operand: expected chunks, a buffer, a channel, a semaphore or a flag"
        )
    return str(operand)


def _index(index):
    if not isinstance(index, slice):
        return str(int(index))
    if index.start is None or index.stop is None or index.step not in (None, 1):
        raise ValueError("chunks are [first:last]")
    return f"{int(index.start)}..{int(index.stop)}"


def _key(key):
    if key is None:
        return ""
    return _value(list(key) if isinstance(key, tuple) else [key])


def _value(value):
    """A number, a truth value, a list, or words of the language ('1KiB..64KiB')."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if not _WORDS.match(value):
            raise ValueError(f"{value!r} is not a value of an option")
        return value
    if isinstance(value, (list, tuple, range)):
        return f"[{', '.join(str(int(element)) for element in value)}]"
    return str(int(value))


def _option(name, value):
    return _name(name) if value is True else f"{_name(name)}: {_value(value)}"


def _pairs(options):
    return ", ".join(f"{_name(name)}: {_value(value)}" for name, value in options.items())


def _options(options):
    return " " + _pairs(options) if options else ""
