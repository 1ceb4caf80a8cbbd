"""The plan of a program, as MSCCL++'s executor reads it: passes, then dicts for JSON."""

from . import globals as current
from .check import check_chunks, check_counts, check_instances, check_limits
from .errors import ProgramError
from .fuse import fuse
from .size import check_blocks
from .sync import add_syncs, write_out_syncs
from .types import BufferType

_WITHOUT_CHANNEL_IDS = frozenset(
    ("put", "ppkt", "rppkt", "rre", "res", "rres", "respkt", "recspkt")
)


def plan_of(program, limits=None):
    """The plan, as what `json` writes. `limits`: it must fit into MSCCL++'s executor; None: as the
    run of the program says."""
    check_counts(program)
    check_chunks(program)
    check_instances(program)
    check_blocks(program)
    lists = passed(program)
    if current.limits if limits is None else limits:
        check_limits(program, lists)
    return {
        "name": program.name,
        "collective": program.collective.name,
        "protocol": program.protocol,
        "inplace": program.collective.inplace,
        "reuse_resources": program.reuse_resources,
        "gpus": [_rank(program, state, lists[state.rank]) for state in program.ranks],
        "num_threads_per_block": program.num_threads_per_block,
        "use_double_scratch_buffer": program.use_double_scratch_buffer,
        "buffer_alignment": program.buffer_alignment,
        "min_message_size": program.min_message_size,
        "max_message_size": program.max_message_size,
    }


def passed(program):
    """For each rank the ops of each of its blocks after all passes."""
    return [
        {tb: _run_passes(program, block.ops) for tb, block in state.blocks.items()}
        for state in program.ranks
    ]


def _run_passes(program, ops):
    if program.instr_fusion:
        ops = fuse(ops)
    ops = write_out_syncs(ops)
    return add_syncs(ops) if program.auto_sync else ops


def _rank(program, state, lists):
    copies = program.instances
    blocks = []
    for tb in range(max(state.blocks, default=-1) + 1):
        block = state.blocks.get(tb)
        for j in range(copies):
            blocks.append(_block(len(blocks), state.rank, block, lists.get(tb, ()), copies, j))
    return {
        "id": state.rank,
        "input_chunks": program.chunks(state.rank, BufferType.input) * copies,
        "output_chunks": program.chunks(state.rank, BufferType.output) * copies,
        "scratch_chunks": state.scratch * copies,
        "threadblocks": blocks,
        "channels": _channels(state, copies),
        "remote_buffers": [
            {"rank": rank, "type": where, "access_channel_types": access}
            for (rank, where), (_, access) in state.remotes.items()
        ],
        "semaphores": [{"init_value": v} for v in state.semaphores for _ in range(copies)],
    }


def _channels(state, copies):
    out = []
    for kind, peers in state.channels.items():
        peers = [peer for peer in peers for _ in range(copies)]
        if kind != "switch":
            out.append({"channel_type": kind, "connected_to": peers})
            continue
        for buffer, ranks in peers:
            group = {"size": len(ranks), "ranks": list(ranks)}
            out.append({"channel_type": kind, "buffer_type": buffer, "rank_groups": [group]})
    return out


def _block(number, rank, block, ops, copies, j):
    """Instance `j` of `copies` of a block; None is a block that the program does not have."""
    channels = block.channels.items() if block else ()
    remotes = block.remotes.items() if block else ()
    return {
        "id": number,
        "ops": [_op(op, rank, copies, j) for op in ops],
        "channels": [
            {"channel_type": kind, "channel_ids": [i * copies + j for i in table]}
            for kind, table in channels
        ],
        "remote_buffer_refs": [
            {"access_channel_type": kind, "remote_buffer_ids": list(table)}
            for kind, table in remotes
        ],
    }


def _op(op, rank, copies, j):
    name = op.name
    out = {"name": name}
    if name == "nop":
        return out
    if name == "barrier":
        out["barrier_id"] = op.detail[0] * copies + j
        out["num_threadblocks"] = op.detail[1]
        return out
    if name == "pipeline":
        out["iter_context"] = {"unit_size": op.detail[0], "num_chunks": op.detail[1]}
        out["ops"] = [_op(inner, rank, copies, j) for inner in op.body]
        return out
    if name in ("sem_acquire", "sem_release"):
        out["semaphore_ids"] = [i * copies + j for i in op.ids]
        return out
    if name == "glre":
        raise ProgramError(
            "a 'reduce' over a switch must be followed by a 'broadcast' of its result over the "
            "same channel: the executor has no op for it alone",
            op.place,
        )
    kind = op.kind
    if op.src:
        remote = "switch_channel_id" if kind == "switch" else "buffer_id"
        out["src_buff"] = [_reference(ref, remote, copies, j) for ref in op.src]
        out["dst_buff"] = [_reference(ref, remote, copies, j) for ref in op.dst]
        if name in ("gstore", "gstorepkt"):
            out["src_buff"][0]["rank"] = rank
    if kind is not None:
        out["channel_type"] = kind
        if kind == "port" or kind == "memory" and name not in _WITHOUT_CHANNEL_IDS:
            out["channel_ids"] = list(op.ids)
    if op.reduce_op is not None:
        out["reduce_op"] = op.reduce_op
    if op.group is not None:
        out["tbg_info"] = {"tb_id": op.group[0], "tbg_size": op.group[1]}
    return out


def _reference(ref, remote, copies, j):
    where, index, size = ref
    if copies > 1:
        index = index * copies + j * size
    key = "type" if where.__class__ is str else remote
    return {key: where, "index": index, "size": size}
