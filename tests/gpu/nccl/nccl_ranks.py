"""A program's ranks as processes of it, with a library of NCCL's interface in front of NCCL, or without.

    options = options_of(add_ranks(parser, gpus), worker)              # which ends the other processes
    lines = run(__file__, options.ranks, library, "--most", "4096")    # in the first one

Ranks find MASTER_ADDR and MASTER_PORT in their environment.
"""
import argparse
import ctypes
import os
import socket
import subprocess
import sys


class UniqueId(ctypes.Structure):
    """ncclUniqueId."""
    _fields_ = [("internal", ctypes.c_byte * 128)]


def add_ranks(parser, gpus):
    """The options of a caller of run(); `gpus`: how many ranks there are by default."""
    parser.add_argument("--ranks", type=int, default=gpus)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    return parser


def options_of(parser, worker):
    """What the first process was given, --library at least. In one that run() has started, `worker` gets
    the options, and the process ends."""
    options = parser.parse_args()
    if options.worker is not None:
        worker(options)
        sys.exit(0)
    if not options.library:
        parser.error("--library is missing")
    return options


def run(program, ranks, library, *arguments, **environment):
    """What all ranks print, as lines, rank by rank. Ends this process where one has failed."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    environment = {**os.environ, **environment, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if library:
        environment["LD_PRELOAD"] = os.path.abspath(library)
    command = [sys.executable, "-B", os.path.abspath(program), "--ranks", str(ranks), *arguments]
    started = [subprocess.Popen([*command, "--worker", str(rank)], env=environment,
                                stdout=subprocess.PIPE, text=True) for rank in range(ranks)]
    lines = [line for process in started for line in process.communicate()[0].splitlines()]
    codes = [process.returncode for process in started]
    if any(codes):
        sys.exit(f"the ranks ended with {codes}")
    return lines
