"""How large a program may be: what does not end, or no machine could hold, is an error at its line."""

from .arguments import MOST_CHUNKS, is_number, needs_number, shown
from .errors import ProgramError

MOST_PARTS = 2**19  # ops, channels, semaphores and buffers of a plan


def room_of(program):
    """How many ops, channels, semaphores and buffers a program may trace: each instance has its own."""
    return MOST_PARTS // program.instances


def no_room(program):
    """The error that there are more."""
    copies = f" with its {program.instances} instances" if program.instances > 1 else ""
    return ProgramError(
        f"the program{copies} has more than {MOST_PARTS} ops, channels, semaphores and buffers"
    )


def check_buffers(program):
    """Buffers must have a number of chunks that plans can hold."""
    needs_number("'chunk_factor'", getattr(program.collective, "chunk_factor", 1), 1, MOST_CHUNKS)
    for rank, buffers in enumerate(program.buffers[: program.num_ranks]):
        for kind, buffer in buffers.items():
            size = buffer.size
            if is_number(size) and 0 <= size * program.instances <= MOST_CHUNKS:
                continue
            copies = f" in each of {program.instances} instances" if program.instances > 1 else ""
            raise ProgramError(
                f"the {kind.name} of rank {rank} has {shown(size)} chunks{copies}; "
                f"a buffer has {MOST_CHUNKS} at most"
            )
