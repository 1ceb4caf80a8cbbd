"""The command line that the programs of this folder share."""

import argparse


def parse(**defaults):
    """Options of a program: ranks, and keywords of CollectiveProgram."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--ranks", type=int, default=defaults.pop("ranks", 4))
    parser.add_argument("--gpus-per-node", type=int, default=2)
    parser.add_argument("--groups", action="store_true", help="groups of thread blocks")
    parser.add_argument("--pipeline", action="store_true")
    parser.add_argument("--no-outer-syncs", action="store_true")
    parser.add_argument("--instances", type=int, default=defaults.pop("instances", 1))
    parser.add_argument("--threads", type=int, default=defaults.pop("threads", 1024))
    parser.add_argument("--most", type=int, default=defaults.pop("most", 2**64 - 1))
    parser.add_argument("--no-fusion", action="store_true")
    parser.add_argument("--no-sync", action="store_true", default=defaults.pop("no_sync", False))
    options = parser.parse_args()
    options.program = dict(
        name=options.name,
        num_ranks=options.ranks,
        instances=options.instances,
        num_threads_per_block=options.threads,
        max_message_size=options.most,
        instr_fusion=not options.no_fusion,
        auto_sync=not options.no_sync,
        **defaults,
    )
    return options
