"""Frameworks, unmodified, with a library of NCCL's interface in front of NCCL.

    python3 tests/gpu/frameworks/run.py --library /opt/mscclc/lib/mscclc/libnccl.so.2
        [--ranks N] [--sources FOLDER] [--only NAMES] [--audit FILE] [--alone] [--logs FOLDER]

Starts each framework with the library in front, a process for each GPU or one for all, and compares
what its collectives give with what the definition says:

    cupy          NcclCommunicator, cupyx.distributed             (by_cupy.py)
    jax           psum, all_gather, … and sums that XLA adds      (by_jax.py)
    jax-graphs    the same, where XLA puts collectives in graphs
    vllm, sglang  their PyNcclCommunicator, by LD_PRELOAD         (by_pynccl.py)
    vllm-path, sglang-path  the same, by VLLM_NCCL_SO_PATH and SGLANG_NCCL_SO_PATH

vLLM's and SGLang's packages `vllm` and `sglang` are looked for in --sources, as they lie in their
wheels; only Python files are needed. --audit puts the library in front by LD_AUDIT instead of LD_PRELOAD;
--alone runs NCCL alone. Each call has a line of NCCL_DEBUG: a collective that no plan has served in any
call has failed. Prints what each framework said and which library served how many calls; the last line
counts.
"""
import argparse
import collections
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# name: script, one process for all ranks?, more of the environment ({} is the library)
RUNS = {
    "cupy": ("by_cupy.py", False, {}),
    "jax": ("by_jax.py", True, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    "jax-graphs": ("by_jax.py", True, {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "XLA_FLAGS": "--xla_gpu_enable_command_buffer=+COLLECTIVES "
                     "--xla_gpu_graph_min_graph_size=1"}),
    "vllm": ("by_pynccl.py", False, {}),
    "vllm-path": ("by_pynccl.py", False, {"VLLM_NCCL_SO_PATH": "{}"}),
    "sglang": ("by_pynccl.py", False, {}),
    "sglang-path": ("by_pynccl.py", False, {"SGLANG_NCCL_SO_PATH": "{}"}),
}
# What plans serve; sends and receives are NVIDIA's where its communicator is there.
COLLECTIVES = {"AllReduce", "Broadcast", "Bcast", "Reduce", "AllGather", "ReduceScatter", "AlltoAll",
               "Gather", "Scatter"}
CALL = re.compile(r"NCCL INFO (\w+): count .*?: (plan|NCCL)(.*)")


def two_ports():
    """Two neighbouring ports that are free."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
                return port
            except (OSError, OverflowError):
                continue


def environment(name, options):
    made = dict(os.environ, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,COLL",
                PYTHONDONTWRITEBYTECODE="1",
                PYTHONPATH=os.pathsep.join(filter(None, [
                    options.sources, os.environ.get("PYTHONPATH")])))
    if options.alone:
        return made
    path = {key: value.format(options.library) for key, value in RUNS[name][2].items()}
    made.update(path)
    if not name.endswith("-path"):
        way = "LD_AUDIT" if options.audit else "LD_PRELOAD"
        made[way] = options.audit or options.library
    if options.host:
        made["MSCCLC_DEVICE"] = "host"
    return made


def started(name, options, logs):
    """Its processes, each with what it says in a file."""
    script, one_process, _ = RUNS[name]
    port = str(two_ports())
    processes = []
    for rank in range(1 if one_process else options.ranks):
        command = [sys.executable, os.path.join(HERE, script), "--rank", str(rank), "--ranks",
                   str(options.ranks), "--port", port, "--name", name.split("-")[0]]
        said = open(os.path.join(logs, f"{name}-{rank}.txt"), "w+", errors="replace")
        processes.append((subprocess.Popen(command + ["--host"] * options.host, stdout=said,
                                           stderr=subprocess.STDOUT, start_new_session=True,
                                           env=environment(name, options)), said))
    return processes


def finished(process, seconds):
    """Its exit code; it is killed, with its children, when the time is over."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return "not in time"
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def count_calls(text, served, reasons):
    """Adds how many calls there are by (function, library), and the reasons for NCCL."""
    for function, library, rest in CALL.findall(text):
        served[function, library] += 1
        if library == "NCCL":
            reasons[f"{function}{rest}"] += 1


def run(name, options, logs):
    """As (passed, failed), and prints the rest."""
    passed = failed = 0
    served, reasons = collections.Counter(), collections.Counter()
    for process, said in started(name, options, logs):
        code = finished(process, options.seconds)
        said.seek(0)
        text = said.read()
        said.close()
        count_calls(text, served, reasons)
        text = "".join(line for line in text.splitlines(True) if " NCCL INFO " not in line)
        counts = re.findall(r"^(\d+) passed, (\d+) failed$", text, re.M)
        right, wrong = map(int, counts[-1]) if counts else (0, 0)
        passed, failed = passed + right, failed + wrong
        if not counts or (code != 0 and wrong == 0):
            failed += 1
            print(f"{name}: a process ended with {code}:\n{text[-4000:]}", flush=True)
        else:
            print("".join(f"{name}: {line}\n" for line in text.splitlines() if line)[:8000], end="")
    if not options.alone:
        for function in sorted({function for function, _ in served}):
            print(f"{name}: {function}: {served[function, 'plan']} by plans, "
                  f"{served[function, 'NCCL']} by NCCL")
            failed += function in COLLECTIVES and served[function, "plan"] == 0
        failed += not served
        for reason, times in reasons.most_common(5):
            print(f"{name}: {times} times {reason}")
    print(f"{name}: {passed} passed, {failed} failed", flush=True)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sources", help="a folder with the packages vllm and sglang")
    parser.add_argument("--only", default=",".join(RUNS), help="names, separated by commas")
    parser.add_argument("--audit", help="libmscclc_audit.so")
    parser.add_argument("--alone", action="store_true", help="without the library")
    parser.add_argument("--host", action="store_true", help="CuPy's communicator without GPUs")
    parser.add_argument("--seconds", type=float, default=240, help="the most for a process")
    parser.add_argument("--logs", help="where all lines go")
    options = parser.parse_args()
    options.library = os.path.abspath(options.library)
    options.audit = options.audit and os.path.abspath(options.audit)
    names = options.only.split(",")
    if unknown := set(names) - set(RUNS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as own:
        logs = os.path.abspath(options.logs or own)
        os.makedirs(logs, exist_ok=True)
        results = [run(name, options, logs) for name in names]
    print(f"{sum(r[0] for r in results)} passed, {sum(r[1] for r in results)} failed")
    return 1 if any(r[1] for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
