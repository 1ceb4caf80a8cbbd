"""An op of a thread block, and the place in the Python program that it comes from.

A reference is a tuple (where, index, size): `where` is the letter of a local buffer, or the
position of a remote buffer or switch in a table of the op's block. Tuples are never changed, so ops
share them, and no pass copies one.
"""

from sys import _getframe

BEFORE, AFTER = 1, 2

# Ops that ask for syncs of their block instead of touching data.
SYNCHRONIZING = frozenset(
    ("signal", "wait", "rlxsignal", "rlxwait", "flush", "sem_acquire", "sem_release")
)


class Op:
    """One op: what stands in a plan, and its place.

    `ids` are positions in the block's table of channels of `kind`, one for each remote reference
    (sources first); those of semaphore ops are the rank's semaphores. `detail` is (id, blocks)
    of a barrier, and (unit, chunks) of a pipeline, whose ops are `body`.
    """

    __slots__ = (
        "name", "kind", "src", "dst", "ids", "sync", "group", "reduce_op", "detail",
        "body", "place", "owned",
    )  # fmt: skip

    def __init__(self, name, place, kind=None, src=(), dst=(), ids=(), sync=0, group=None):
        self.name = name
        self.place = place
        self.kind = kind
        self.src = src
        self.dst = dst
        self.ids = ids
        self.sync = sync
        self.group = group
        self.reduce_op = None
        self.detail = None
        self.body = None
        self.owned = False  # a copy of a pass, whose lists nobody else has

    def copy(self):
        """A copy that a pass may change, its lists as well."""
        new = Op(
            self.name, self.place, self.kind, [*self.src], [*self.dst], [*self.ids], self.sync,
            self.group,
        )  # fmt: skip
        new.owned = True
        new.reduce_op, new.detail, new.body = self.reduce_op, self.detail, self.body
        return new


def nop(place):
    """A sync of the block."""
    return Op("nop", place)


# Python searches for a line each time it is asked; programs make most calls in loops. By the number of
# a code object, and where in it the call is. The codes are kept, so that no other one has the number.
_places = {}
_codes = []


def caller(depth):
    """The place (file, line) of the call `depth` frames above the function that asks."""
    frame = _getframe(depth + 1)
    code = frame.f_code
    key = id(code), frame.f_lasti
    place = _places.get(key)
    if place is None:
        place = _places[key] = code.co_filename, frame.f_lineno
        _codes.append(code)
    return place


def forget_callers():
    """Lets go of the code of programs that have ended."""
    _places.clear()
    _codes.clear()
