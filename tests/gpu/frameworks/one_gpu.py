"""Ranks of NCCL that share a GPU: it refuses such ranks of one machine, takes these for nodes, and uses sockets."""

#: Of every rank.
ENVIRONMENT = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}


def node_of(rank):
    """What besides makes a rank a node."""
    return {"NCCL_HOSTID": f"rank {rank}"}
