"""The plan of a program, as MSCCL++'s executor reads it: libmscclc makes it of the program's trace."""

import json
from array import array
from ctypes import POINTER, byref, c_size_t, c_uint64, c_void_p, string_at

from ...._library import NOT_PROVED, check, library
from . import globals as current
from .errors import ProgramError
from .types import BufferType, ReplicationPolicy
from .words import AUTO_SYNC, FORMAT, FUSION, LIMITS

_LINE, _COMPACT = -1, -2  # layouts of libmscclc


def json_of(program, indent, options):
    """The plan as json.dumps() writes it with these arguments."""
    if not options and (indent is None or indent.__class__ is int and 0 <= indent <= 64):
        return _text(program, indent, None, _LINE if indent is None else indent)
    return json.dumps(json.loads(compact_plan(program)), indent=indent, **options)


def compact_plan(program, limits=None):
    """The plan without any space. `limits`: it must fit into MSCCL++'s executor; None: as the run of
    the program says."""
    return _text(program, None, (",", ":"), _COMPACT, limits)


def places_of(program):
    """For each rank and each thread block of one instance the places of its ops, in order: pairs of
    the op's place and None, or those of the ops of the pipeline that it is."""
    words = iter(_call(program, places=True, limits=False))
    place = program.trace.place_of
    ranks = []
    for _ in range(program.num_ranks):
        blocks = [[] for _ in range(next(words))]
        ranks.append(blocks)
        for ops in blocks:
            for _ in range(next(words)):
                of_op, inner = place(next(words)), next(words)
                body = [place(next(words)) for _ in range(inner - 1)] if inner else None
                ops.append((of_op, body))
    return ranks


def check_signals(program):
    """For every pair of ranks and type of channel: as many waits as signals."""
    _call(program)


def _text(program, indent, separators, layout, limits=None):
    gpus = _call(program, layout, limits=limits)
    plan = {
        "name": program.name,
        "collective": program.collective.name,
        "protocol": program.protocol,
        "inplace": program.collective.inplace,
        "reuse_resources": program.reuse_resources,
        "gpus": None,
        "num_threads_per_block": program.num_threads_per_block,
        "use_double_scratch_buffer": program.use_double_scratch_buffer,
        "buffer_alignment": program.buffer_alignment,
        "min_message_size": program.min_message_size,
        "max_message_size": program.max_message_size,
    }
    text = json.dumps(plan, indent=indent, separators=separators)
    key = '"gpus":' if separators else '"gpus": '  # in a string its quotes would be escaped
    before, _, after = text.partition(key + "null")
    return f"{before}{key}{gpus}{after}"


def _call(program, layout=None, places=False, limits=None):
    """What libmscclc makes of the program: the list "gpus" as text, or the words of places."""
    if layout is not None or places:
        _check(program)
    words = _words(program, current.limits if limits is None else limits)
    gpus, found, count, wrong_at = c_void_p(), POINTER(c_uint64)(), c_size_t(), c_uint64()
    address, size = words.buffer_info()
    result = library().mscclc_plan_of_trace(
        address, size, layout or 0,
        byref(gpus) if layout is not None else None,
        byref(found) if places else None, byref(count) if places else None,
        byref(wrong_at),
    )  # fmt: skip
    if result == NOT_PROVED:
        text = library().mscclc_last_error().decode()
        raise ProgramError(text, program.trace.place_of(wrong_at.value))
    check(result)
    try:
        return found[: count.value] if places else gpus.value and string_at(gpus.value).decode()
    finally:
        library().mscclc_free(gpus)
        library().mscclc_free(found)


def _words(program, limits):
    flags = FUSION * program.instr_fusion | AUTO_SYNC * program.auto_sync | LIMITS * bool(limits)
    words = array("Q", (FORMAT, program.instances, flags, program.num_ranks))
    for rank in range(program.num_ranks):
        inputs, outputs = (program.chunks(rank, kind) for kind in (BufferType.input, BufferType.output))
        words.extend((inputs, outputs, program.trace.scratch[rank]))
    return words + program.trace.words()


def _check(program):
    """What the executor would divide by must not be zero, and instances need a policy that says which
    chunks are whose."""
    if program.loop_context is not None:
        raise ProgramError("the plan of a program whose loop has not ended")
    for rank, buffers in enumerate(program.buffers[: program.num_ranks]):
        for kind, buffer in buffers.items():
            if buffer.size < 1:
                raise ProgramError(
                    f"the {kind.name} of rank {rank} has no chunks; the executor divides by them",
                    program.place,
                )
    if program.instances > 1 and program.replication_policy is not ReplicationPolicy.interleaved:
        raise ProgramError(
            f"{program.instances} instances, and the replication policy "
            f"'{program.replication_policy.name}'; there is 'interleaved'",
            program.place,
        )
