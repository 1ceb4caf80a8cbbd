"""The communicator that a group of ranks has. Its collectives only say that they were called."""

import torch.distributed as dist


class CudaCommunicator:
    """What its groups know of themselves, and what mscclc leaves to vLLM."""

    def __init__(
        self, cpu_group, device=None, device_group=None, unique_name="", global_ranks=None,
        global_world_size=None, tcp_store_group=None,
    ):  # fmt: skip
        self.cpu_group, self.device, self.device_group = cpu_group, device, device_group
        self.unique_name = unique_name
        self.world_size = dist.get_world_size(cpu_group)
        self.ranks = dist.get_process_group_ranks(cpu_group)
        self.rank_in_group = dist.get_rank(cpu_group)
        self.set_up = ["nccl", "own"] if "tp" in unique_name else ["nccl"]
        self.destroyed = False

    def all_reduce(self, input_):
        return "all_reduce"

    def all_gather(self, input_, dim=-1):
        return "all_gather"

    def all_gatherv(self, input_, dim=0, sizes=None):
        return "all_gatherv"

    def reduce_scatter(self, input_, dim=-1):
        return "reduce_scatter"

    def reduce_scatterv(self, input_, dim=-1, sizes=None):
        return "reduce_scatterv"

    def destroy(self):
        """Ends it."""
        self.destroyed = True
