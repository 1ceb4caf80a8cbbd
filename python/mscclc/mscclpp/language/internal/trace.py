"""What is kept of a program's calls: a list of numbers, one record after another.

A call costs little more than one that keeps nothing: it checks its arguments and appends one record of
numbers. What follows from the calls, libmscclc finds out when the plan is asked for.

A record's last number says where in its code object the call is; which line that is, only errors ask.
"""

from array import array
from sys import _getframe

from .arguments import needs_block, needs_kind
from .errors import ProgramError
from .rules import needs_equal
from .types import SyncType
from .words import CODE, GROUP, NO_PLACE


class Trace:
    """The records of a program, and what its calls need to know of those before.

    Calls append a record by `add`, after a look at `room`, which is 0 outside of the program's `with`,
    and, where `code` is not the code object that they are in, after enter().
    """

    __slots__ = (
        "add", "room", "code", "ids", "channels", "scratch", "semaphores",
        "_program", "_new", "_packed", "_codes", "_numbers", "_room_inside", "_places",
    )  # fmt: skip

    def __init__(self, program, room):
        self._program = program
        self._new = []  # numbers that are not packed yet
        self._packed = array("Q")
        self.add = self._new.extend
        self.room = 0  # how many more ops, channels, semaphores and buffers there may be
        self._room_inside = room
        self.code = None
        self._codes = []
        self._numbers = {}  # of code objects, by id()
        self._places = {}
        ranks = program.num_ranks
        self.ids = [[0] * ranks for _ in range(3)]  # of the next channel of a kind of each rank
        self.channels = 0  # all of them
        self.scratch = [0] * ranks  # chunks
        self.semaphores = [0] * ranks

    def open(self):
        """The program's `with` begins."""
        self.room = self._room_inside

    def close(self):
        """The program's `with` ends: a call that comes later is refused."""
        self._room_inside, self.room = self.room, 0

    def take_room(self, parts=1):
        """Counts what the program gets."""
        if self.room < parts:
            self.refuse()
        self.room -= parts

    def refuse(self):
        """There is no room for a call."""
        raise self._program.why_no_room()

    def enter(self, code):
        """Calls that follow are in this code object."""
        number = self._numbers.get(id(code))
        if number is None:
            number = self._numbers[id(code)] = len(self._codes)
            self._codes.append(code)  # kept, so that no other one has this id()
        self.code = code
        self.add((CODE, number))

    def prepare_sync(self, frame, tb, data_sync):
        """What the record of an op that synchronizes needs to be right, and before it."""
        needs_block(tb)
        needs_kind("'data_sync'", data_sync, SyncType, "a SyncType")
        self._prepare(frame)

    def prepare_move(self, frame, dst, src, tb, tb_group):
        """The same for an op on chunks. The block for the record: 0 where a group's record says which."""
        needs_equal(dst, src)
        if tb_group is None and tb is None:
            raise ProgramError("for which thread block? Say 'tb' or 'tb_group'")
        if tb is not None:
            needs_block(tb)
        if tb_group is None:
            self._prepare(frame)
            return tb
        blocks = tb_group.tb_list if tb is None else (tb,)
        places = [tb_group.get_internal_id(block) for block in blocks]
        self._prepare(frame, len(blocks))
        self.room += 1 - len(blocks)  # the caller takes one
        self.add((GROUP, tb_group.numtb(), len(blocks)))
        for member in zip(blocks, places):
            self.add(member)
        return 0

    def _prepare(self, frame, parts=1):
        if self.room < parts:
            self.refuse()
        if self.code is not frame.f_code:
            self.enter(frame.f_code)

    def words(self):
        """All records, packed."""
        self._packed.extend(array("Q", self._new))
        self._new.clear()
        return self._packed

    def place_of(self, word):
        """The place (file, line) that a word of a plan's places says."""
        place = self._places.get(word)
        if place is None:
            place = self._places[word] = self._find_place(word)
        return place

    def _find_place(self, word):
        if word == NO_PLACE:
            return self._program.place
        code, at = self._codes[word >> 32], word & 0xFFFFFFFF
        lines = (line for first, end, line in code.co_lines() if first <= at < end)
        return code.co_filename, next(lines, None) or code.co_firstlineno


def caller(depth):
    """The place (file, line) of the call `depth` frames above the function that asks."""
    frame = _getframe(depth + 1)
    return frame.f_code.co_filename, frame.f_lineno
