"""Syncs of thread blocks: those that ops ask for, and those that their data needs."""

from bisect import bisect_left, bisect_right

from .op import AFTER, BEFORE, nop

# Which references of an op count: sources and destinations, as slices of its lists. Packets order
# themselves; what lies on other ranks is ordered by signals.
_ALL, _FIRST, _NONE = slice(None), slice(0, 1), slice(0)
_ACCESSES = {
    "copy": (_ALL, _ALL),
    "cpkt": (_ALL, _NONE),
    "upkt": (_NONE, _ALL),
    "put": (_ALL, _NONE),
    "pws": (_ALL, _NONE),
    "pwsf": (_ALL, _NONE),
    "ppkt": (_ALL, _NONE),
    "get": (_NONE, _ALL),
    "re": (_ALL, _FIRST),
    "res": (_ALL, _FIRST),
    "rre": (_FIRST, _FIRST),
    "rres": (_FIRST, _FIRST),
    "repkt": (_ALL, _FIRST),
    "respkt": (_ALL, _FIRST),
    "recpkt": (_ALL, _FIRST),
    "recspkt": (_ALL, _FIRST),
    "gstore": (_ALL, _NONE),
}


def write_out_syncs(ops):
    """Each sync that an op asks for becomes a nop."""
    out = []
    for op in ops:
        if op.sync & BEFORE:
            out.append(nop(op.place))
        if op.body is not None:
            op = op.copy()
            op.body = write_out_syncs(op.body)
        out.append(op)
        if op.sync & AFTER:
            out.append(nop(op.place))
    return out


def add_syncs(ops):
    """A nop before every op that touches what an op since the last nop has touched, one writing."""
    out = []
    seen = _Accesses()
    for op in ops:
        if op.name in ("nop", "barrier"):
            seen = _Accesses()
            out.append(op)
            continue
        if op.body is not None:
            op = op.copy()
            op.body = add_syncs(op.body)
        accesses = _accesses_of(op)
        if accesses and seen.conflicts_with(accesses):
            out.append(nop(op.place))
            seen = _Accesses()
        seen.add(accesses)
        out.append(op)
    return out


class _Accesses:
    """Which chunks of which buffers are read and written."""

    __slots__ = ("read", "written")

    def __init__(self):
        self.read = {}
        self.written = {}

    def conflicts_with(self, accesses):
        for writes, (where, first, count) in accesses:
            written = self.written.get(where)
            if written is not None and written.has_any(first, first + count):
                return True
            read = self.read.get(where) if writes else None
            if read is not None and read.has_any(first, first + count):
                return True
        return False

    def add(self, accesses):
        for writes, (where, first, count) in accesses:
            chunks = self.written if writes else self.read
            found = chunks.get(where)
            if found is None:
                found = chunks[where] = Runs()
            found.add(first, first + count)


class Runs:
    """Chunks of a buffer as runs in order that do not touch: a run may have billions."""

    __slots__ = ("first", "last")

    def __init__(self):
        self.first = []  # of each run
        self.last = []  # behind each run

    def has_any(self, first, last):
        """Whether some of the chunks from `first` up to `last` are among these."""
        at = bisect_right(self.last, first)  # the first run that ends behind `first`
        return at < len(self.first) and self.first[at] < last

    def add(self, first, last):
        """Adds the chunks from `first` up to `last`."""
        if not self.last or first > self.last[-1]:  # programs mostly go upwards
            self.first.append(first)
            self.last.append(last)
            return
        begin = bisect_left(self.last, first)  # runs from here up to `end` touch the new one
        end = bisect_right(self.first, last)
        if begin < end:
            first = min(first, self.first[begin])
            last = max(last, self.last[end - 1])
        self.first[begin:end] = [first]
        self.last[begin:end] = [last]


def _accesses_of(op):
    """Pairs of whether it writes, and a local reference."""
    if op.body is not None:
        return [access for inner in op.body for access in _accesses_of(inner)]
    slices = _ACCESSES.get(op.name)
    if slices is None:
        return ()
    reads = [(False, ref) for ref in op.src[slices[0]] if ref[0].__class__ is str]
    return reads + [(True, ref) for ref in op.dst[slices[1]] if ref[0].__class__ is str]
