"""Fusion: neighbours in a thread block become one op, and syncs that say the same become one.

A pass from left to right: an op absorbs the next one as long as a rule of the table allows it. The
first one that an op absorbs makes it a copy with lists of its own, so that the trace stays as it is
and can be compiled again.

Where MSCCL++'s own rules would change what a program computes, these do not: a stored sum goes to
the chunk that the broadcast names, and fusion ends where the executor's arrays do.
"""

from .check import MAX_DATA_CHANNELS, MAX_REFERENCES
from .op import AFTER, BEFORE


def fuse(ops):
    """The ops of a block after fusion."""
    out = []
    left = None
    for right in ops:
        if right.body is not None:
            right = right.copy()
            right.body = fuse(right.body)
        if left is None:
            left = right
            continue
        rule = _RULES.get((left.name, right.name))
        fused = rule(left, right) if rule is not None else None
        if fused is not None:
            left = fused
            continue
        if right.sync & BEFORE and _ends_with_sync(left):
            right = _without(right, BEFORE)
        elif left.sync & AFTER and (right.sync & BEFORE or _begins_with_sync(right)):
            left = _without(left, AFTER)
        out.append(left)
        left = right
    if left is not None:
        out.append(left)
    return out


def _without(op, sync):
    """The op without a sync that its neighbour asks for as well."""
    op = op if op.owned else op.copy()
    op.sync &= ~sync
    return op


def _begins_with_sync(op):
    if op.body:
        first = op.body[0]
        return bool(first.sync & BEFORE) or _begins_with_sync(first)
    return op.name in ("nop", "barrier")


def _ends_with_sync(op):
    if op.body:
        last = op.body[-1]
        return bool(last.sync & AFTER) or _ends_with_sync(last)
    return op.name in ("nop", "barrier")


def _left(left, right):
    return left


def _right(left, right):
    return right


def _into_pipeline(left, right):
    return right if _begins_with_sync(right) else None


def _after_pipeline(left, right):
    return left if _ends_with_sync(left) else None


def _join_channels(left, right):
    """Signals, waits and flushes of one kind: one op for all channels."""
    if left.kind != right.kind:
        return None
    if left.name != "flush" and any(at in left.ids for at in right.ids):
        return None
    return _join(left, right, (), ())


def _join_semaphores(left, right):
    return _join(left, right, (), ())


def _join_puts(left, right):
    """Transfers of equal size through channels of one kind."""
    if left.kind != right.kind or left.group != right.group:
        return None
    if left.src[0][2] != right.src[0][2]:
        return None
    return _join(left, right, right.src, right.dst)


def _join_forwards(left, right):
    """One source of packets, several destinations."""
    if left.kind != right.kind or left.group != right.group or left.src != right.src:
        return None
    return _join(left, right, (), right.dst)


def _join_sums(left, right):
    """Two sums from the same first source into the same chunk."""
    same = left.src[0] == right.src[0] and left.dst == right.dst
    if not same or left.kind != right.kind or left.group != right.group:
        return None
    if left.reduce_op != right.reduce_op:
        return None
    return _join(left, right, right.src[1:], ())


def _send_sum(name, source):
    """A sum whose result (`source`: which of the destinations) goes to a peer as well."""

    def rule(left, right):
        if right.kind != "memory" or left.group != right.group or len(right.src) != 1:
            return None
        if right.src[0] != left.dst[source]:
            return None
        fused = _join(left, right, (), right.dst)
        if fused is not None:
            fused.name, fused.kind = name, "memory"
        return fused

    return rule


def _pack_sum(left, right):
    """A packet sum whose result is also kept as packets."""
    if left.group != right.group or right.src[0] != left.dst[0]:
        return None
    fused = _join(left, right, (), right.dst)
    if fused is not None:
        fused.name = "recpkt"
    return fused


def _switch_sum(left, right):
    """A sum over a switch that is only stored back through it."""
    same_channel = left.ids == right.ids and left.src[0][2] == right.dst[0][2]
    if not same_channel or right.src[0] != left.dst[0]:
        return None
    fused = left.copy()
    fused.name, fused.dst = "glres", list(right.dst)
    return fused


def _join(left, right, src, dst):
    """`left` with these further references, and the channels and syncs of `right` as well, if the
    executor has room for it."""
    if len(left.src) + len(src) > MAX_REFERENCES or len(left.dst) + len(dst) > MAX_REFERENCES:
        return None
    if right.kind == "port" and right.dst and len(left.ids) + len(right.ids) > MAX_DATA_CHANNELS:
        return None
    fused = left if left.owned else left.copy()
    if src:
        fused.src += src
    if dst:
        fused.dst += dst
    fused.ids += right.ids
    fused.sync |= right.sync
    return fused


_RULES = {
    ("nop", "nop"): _left,
    ("nop", "barrier"): _right,
    ("barrier", "nop"): _left,
    ("nop", "pipeline"): _into_pipeline,
    ("pipeline", "nop"): _after_pipeline,
    ("sem_acquire", "sem_acquire"): _join_semaphores,
    ("sem_release", "sem_release"): _join_semaphores,
    ("rppkt", "rppkt"): _join_forwards,
    ("re", "put"): _send_sum("res", 0),
    ("res", "put"): _send_sum("res", 0),
    ("rre", "put"): _send_sum("rres", 0),
    ("rres", "put"): _send_sum("rres", 0),
    ("repkt", "ppkt"): _send_sum("respkt", 0),
    ("respkt", "ppkt"): _send_sum("respkt", 0),
    ("repkt", "cpkt"): _pack_sum,
    ("recpkt", "ppkt"): _send_sum("recspkt", 0),
    ("recspkt", "ppkt"): _send_sum("recspkt", 0),
    ("recpkt", "rppkt"): _send_sum("recspkt", 1),
    ("recspkt", "rppkt"): _send_sum("recspkt", 1),
    ("glre", "gstore"): _switch_sum,
}
for _name in ("signal", "wait", "rlxsignal", "rlxwait", "flush"):
    _RULES[_name, _name] = _join_channels
for _name in ("put", "pws", "pwsf", "ppkt", "get"):
    _RULES[_name, _name] = _join_puts
for _name in ("re", "rre", "repkt"):
    _RULES[_name, _name] = _join_sums
