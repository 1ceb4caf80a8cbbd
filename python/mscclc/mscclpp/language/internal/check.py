"""Checks of a whole program: signals against waits, and the bounds of the executor's arrays."""

from .errors import ProgramError
from .types import ReplicationPolicy

# The executor has arrays of this size in a thread block, and does not check them.
MAX_CHANNELS = 16
MAX_REMOTES = 16
MAX_OPS = 64
MAX_BARRIERS = 16
MAX_REFERENCES = 10  # of an op, on each side
MAX_DATA_CHANNELS = 8  # of an op that moves data through ports
MAX_SEMAPHORES = 16  # of an op


def check_counts(program):
    """For every pair of ranks and type of channel: as many waits as signals."""
    for key in {**program.signals, **program.waits}:
        signals, waits = program.signals.get(key), program.waits.get(key)
        sent, taken = signals[0] if signals else 0, waits[0] if waits else 0
        if sent == taken:
            continue
        kind, source, target = key
        more = signals if sent > taken else waits
        raise ProgramError(
            f"rank {source} signals rank {target} {_times(sent)} over {kind} channels, "
            f"which waits {_times(taken)}",
            more[1],
        )


def check_chunks(program):
    """What the executor would divide by must not be zero."""
    for rank, buffers in enumerate(program.buffers[: program.num_ranks]):
        for kind, buffer in buffers.items():
            if buffer.size < 1:
                raise ProgramError(
                    f"the {kind.name} of rank {rank} has no chunks; the executor divides by them",
                    program.place,
                )
    if not any(state.blocks for state in program.ranks):
        raise ProgramError("the program has no ops", program.place)


def check_instances(program):
    """Instances need a policy that says which chunks are whose."""
    if program.instances > 1 and program.replication_policy is not ReplicationPolicy.interleaved:
        raise ProgramError(
            f"{program.instances} instances, and the replication policy "
            f"'{program.replication_policy.name}'; there is 'interleaved'",
            program.place,
        )


def check_limits(program, lists):
    """What the executor has room for; `lists` are the ops of each block after all passes."""
    for state in program.ranks:
        if len(state.barriers) * program.instances > MAX_BARRIERS:
            raise ProgramError(
                f"rank {state.rank} has {len(state.barriers) * program.instances} barriers; "
                f"the executor has room for {MAX_BARRIERS}",
                program.place,
            )
        for tb, block in state.blocks.items():
            where = f"thread block {tb} of rank {state.rank}"
            ops = lists[state.rank][tb]
            _check_table(where, "{} channels", block.channels, MAX_CHANNELS, ops)
            _check_table(where, "remote buffers over {}", block.remotes, MAX_REMOTES, ops)
            flat = list(_flat(ops))
            for op in flat:
                _check_op(op)
            if len(flat) > MAX_OPS:
                raise ProgramError(
                    f"{where} has {len(flat)} ops; the executor has room for {MAX_OPS}",
                    flat[MAX_OPS].place,
                )


def _check_table(where, what, tables, limit, ops):
    for kind, table in tables.items():
        if len(table) > limit:
            raise ProgramError(
                f"{where} has {len(table)} {what.format(kind)}; "
                f"the executor has room for {limit}",
                _first_beyond(ops, kind, limit, "channels" in what),
            )


def _check_op(op):
    references = max(len(op.src), len(op.dst))
    semaphores = len(op.ids) if op.name.startswith("sem_") else 0
    ports = len(op.ids) if op.kind == "port" and op.dst else 0
    for count, limit, what in (
        (references, MAX_REFERENCES, "chunks on a side"),
        (semaphores, MAX_SEMAPHORES, "semaphores"),
        (ports, MAX_DATA_CHANNELS, "port channels"),
    ):
        if count > limit:
            raise ProgramError(
                f"this op has {count} {what}; the executor has room for {limit}", op.place
            )


def _first_beyond(ops, kind, limit, channels):
    """The place of the first op that uses an entry of a table beyond the limit."""
    for op in _flat(ops):
        if op.kind != kind:
            continue
        refs = () if channels else (*op.src, *op.dst)
        used = [*op.ids] if channels else [ref[0] for ref in refs if isinstance(ref[0], int)]
        if any(at >= limit for at in used):
            return op.place
    return None


def _flat(ops):
    for op in ops:
        yield op
        if op.body is not None:
            yield from _flat(op.body)


def _times(count):
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
