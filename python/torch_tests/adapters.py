#!/usr/bin/env python3
"""Compiles the adapter with the headers of versions of torch, and no more of them: nothing is linked or run.

    python/torch_tests/adapters.py VERSION…      2.8.0 2.9.1 2.15.0, say

Headers are of the wheels of PyPI, and kept beside the environments (environment): the first time takes a
download of up to 900 MB, later a version takes a quarter of a minute.

compiles() also leaves out of headers what came later, so that those of one version stand in for an older one.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "3.12"  # of the wheels: headers of torch are the same for all
# What torch 2.15 has and 2.8 has not, by the header that declares it.
LATER_THAN_2_8 = {
    "torch/csrc/distributed/c10d/Backend.hpp": """
        C10D_BACKEND_HAS_HOOKS C10D_BACKEND_HAS_RECONFIGURE C10D_BACKEND_HAS_WINDOW addEphemeralTimeout
        all_gather_single all_gather_single_coalesced all_to_all_single clone enable_reconfigure endTimeEstimate
        gather_into_tensor gather_single getBackendOptions getMemoryStats getUsePgForSymmMemRendezvous
        get_reconfigure_handle global_ranks_in_group group_desc group_name isInitialized merge new_window
        reconfigure reduce_scatter_single reduce_scatter_single_coalesced registerAbortHook
        registerCompletionHook resume setTimeout setUsePgForSymmMemRendezvous shrink split startTimeEstimate
        supportsAbortHooks supportsCompletionHooks supportsReconfigure supportsShrinking supportsWindow suspend
        unregisterAbortHook unregisterCompletionHook use_pg_for_symm_mem_rendezvous""",
    "torch/csrc/distributed/c10d/ProcessGroup.hpp": """
        addEphemeralTimeout all_gather_single all_gather_single_coalesced all_to_all_single gather_into_tensor
        gather_single getStore getUsePgForSymmMemRendezvous get_reconfigure_handle hasBackendForDeviceType
        mergeRemoteGroup new_window reconfigure reduce_scatter_single reduce_scatter_single_coalesced
        registerAbortHook registerCompletionHook registerPostHook registerPreHook setTimeout
        setUsePgForSymmMemRendezvous splitGroup supportsAbortHooks supportsCompletionHooks supportsReconfigure
        supportsWindow unregisterAbortHook unregisterCompletionHook unregisterPostHook unregisterPreHook""",
    "torch/csrc/distributed/c10d/Types.hpp": """
        enable_reconfigure isComplexViewAsRealAllowed makePreMulSum""",
    "torch/csrc/distributed/c10d/GroupRegistry.hpp": "is_process_group_registered",
    "torch/csrc/distributed/c10d/Work.hpp": """
        ALLGATHER_INTO_TENSOR_COALESCED REDUCE_SCATTER_TENSOR_COALESCED blockCurrentStream getCompletionKey
        getTimeout get_comm_profiling_name set_comm_profiling_name""",
    "torch/csrc/distributed/c10d/Store.hpp": "listKeys",
    "torch/csrc/distributed/c10d/HashStore.hpp": "listKeys",
    "torch/csrc/distributed/c10d/PrefixStore.hpp": "listKeys",
    "c10/core/Stream.h": "is_capturing native_handle",
}  # fmt: skip


def headers_of(version):
    """The folder of torch's headers of a version, which is filled the first time."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    kept = os.path.join(cache, "mscclc-torch", f"headers-{version}")
    if not os.path.exists(kept):
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(kept)) as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps"]
            of_any = ["--only-binary=:all:", "--python-version", PYTHON, "--dest", folder, f"torch=={version}"]
            subprocess.run([*pip, *of_any], check=True)
            (wheel,) = (name for name in os.listdir(folder) if name.endswith(".whl"))
            with zipfile.ZipFile(os.path.join(folder, wheel)) as file:
                names = [name for name in file.namelist() if name.startswith("torch/include/")]
                file.extractall(folder, names)
            os.rename(os.path.join(folder, "torch", "include"), kept)
    return kept


def compiles(headers, version, without=None):
    """What the compiler says of the adapter with a folder of torch's headers, by the command of the package
    itself, which takes the torch of that version to be there: "" if it is right. Headers lack what is named in
    `without` as LATER_THAN_2_8 does: it has other names."""
    with tempfile.TemporaryDirectory() as folder:
        torch = os.path.join(folder, "torch")
        os.mkdir(torch)
        with open(os.path.join(torch, "__init__.py"), "w") as file:
            file.write(f"__version__ = '{version}'\ndef compiled_with_cxx11_abi(): return True\n")
            file.write("class ops: mscclc = None\n")
        with open(os.path.join(torch, "distributed.py"), "w") as file:
            file.write("def is_available(): return False\n")
        os.symlink(os.path.abspath(headers), os.path.join(torch, "include"))
        older = os.path.join(folder, "older")
        for name, words in (without or {}).items():
            _rename(os.path.join(headers, name), os.path.join(older, name), words.split())
        _write_compiler(os.path.join(folder, "g++"), older)
        done = subprocess.run(
            [sys.executable, "-S", "-m", "mscclc.torch.adapter", folder],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={
                **os.environ,
                "PATH": f"{folder}:{os.environ['PATH']}",
                "PYTHONPATH": f"{folder}:{os.path.dirname(HERE)}",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )  # fmt: skip
        made = os.path.exists(os.path.join(folder, f"libmscclc_torch-{minor(version)}.so"))
        return "" if done.returncode == 0 and made else done.stdout or "no library"


def minor(version):
    return ".".join(version.split(".")[:2])


def declared(headers, later):
    """The names among those of `later` that headers have."""
    found = []
    for name, words in later.items():
        with open(os.path.join(headers, name)) as file:
            text = file.read()
        found += [f"{name}: {word}" for word in words.split() if re.search(rf"\b{word}\b", text)]
    return found


def _rename(source, target, words):
    with open(source) as file:
        text = file.read()
    for word in words:
        text = re.sub(rf"\b{word}\b", f"later_{word}", text)  # torch between may lack some
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w") as file:
        file.write(text)


def _write_compiler(path, older):
    """A g++ that only compiles, and writes an empty library."""
    with open(path, "w") as file:
        file.write(f"""#!/bin/sh
{shutil.which("g++")} -I {older} -fsyntax-only "$@" || exit
while [ "$1" != -o ]; do shift; done
: >"$2"
""")
    os.chmod(path, 0o755)


def main(versions):
    failed = False
    for version in versions:
        headers = headers_of(version)
        wrong = compiles(headers, version)
        if minor(version) == "2.8":
            wrong += "".join(f"2.8 has {name}\n" for name in declared(headers, LATER_THAN_2_8))
        print(f"torch {version}:", wrong or "the adapter compiles", flush=True)
        failed |= bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if sys.argv[1:] else __doc__)
