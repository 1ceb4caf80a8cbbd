"""Groups of torch.distributed under the names by which symmetric memory registers them with torch.

These names begin with a prefix, so that no group of the same ranks can have one. They are registered
before a rendezvous, and go with the last memory of the group.
"""

import torch.distributed as dist
from torch._C._distributed_c10d import (
    _register_process_group,
    _resolve_process_group,
    _unregister_process_group,
)

from ..errors import UsageError

_PREFIX = "mscclc/symmetric/"
_teams = {}


def name_of(group) -> str:
    """The name by which a group is registered, and is handed to a rendezvous."""
    return _PREFIX + group.group_name


def group_of(group) -> dist.ProcessGroup:
    """A group, or the group of a name. Refuses ranks that are not in it."""
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        raise UsageError("this rank is not in the group")
    if isinstance(group, str):
        try:
            return _resolve_process_group(group)
        except RuntimeError:
            raise UsageError(f"there is no process group {group!r}") from None
    if not isinstance(group, dist.ProcessGroup):
        raise UsageError(
            "a group is a mscclc.Communicator, or a process group of torch, or its name, not"
            f" {type(group).__name__}"
        )
    return group


class Team:
    """A group that has symmetric memory."""

    def __init__(self, group):
        self.group, self.name = group, name_of(group)
        self._users = 0
        self._met = False

    @classmethod
    def of(cls, group) -> "Team":
        """The team of a group, with one more user."""
        name = name_of(group)
        team = _teams.get(name)
        if team is None or team.group is not group:
            if team is not None:
                _unregister_process_group(name)  # its group is gone; this one has the name now
            elif _is_taken(name):
                raise UsageError(f"there is a process group {name!r}, which mscclc has not made")
            team = _teams[name] = cls(group)
            _register_process_group(name, group)
        team._users += 1
        return team

    def meet(self):
        """Once: ranks make NCCL's communicator, which its symmetric memory expects to be there."""
        if not self._met:
            dist.barrier(self.group)
            self._met = True

    def release(self):
        """One user less."""
        self._users -= 1
        if self._users == 0 and _teams.get(self.name) is self:
            del _teams[self.name]
            _unregister_process_group(self.name)


def _is_taken(name):
    try:
        _resolve_process_group(name)
    except RuntimeError:
        return False
    return True
