"""The communicator that a group of ranks has. Its own collectives must not be called here."""

import torch.distributed as dist


class CudaCommunicator:
    """What its groups know of themselves, and what mscclc leaves to vLLM."""

    def __init__(self, cpu_group, device=None, device_group=None, unique_name=""):
        self.cpu_group, self.device, self.device_group = cpu_group, device, device_group
        self.unique_name = unique_name
        self.world_size = dist.get_world_size(cpu_group)
        self.ranks = dist.get_process_group_ranks(cpu_group)
        self.rank_in_group = dist.get_rank(cpu_group)
        self.destroyed = False

    def dispatch(self, hidden_states, router_logits):
        """Of experts."""
        return hidden_states, router_logits

    def destroy(self):
        """Ends it."""
        self.destroyed = True
