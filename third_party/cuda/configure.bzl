"""Finds nvcc on this machine and describes what it finds as the repository @local_cuda.

nvcc is looked for in $CUDA_HOME, then /usr/local/cuda, then on PATH. Where there is none the
repository is still valid (FOUND = False), so that everything else builds.
"""

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "cudart",
    hdrs = glob(["include/**"], allow_empty = True),
    includes = ["include"],
    linkopts = {linkopts},
)
"""

def _cuda_home(rctx):
    candidates = [rctx.os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    on_path = rctx.which("nvcc")
    if on_path:
        candidates.append(str(on_path.realpath.dirname.dirname))
    for home in candidates:
        if home and rctx.path(home + "/bin/nvcc").exists:
            return home
    return None

def _local_cuda(rctx):
    home = _cuda_home(rctx)
    linkopts = []
    if home:
        rctx.symlink(home + "/include", "include")
        linkopts = ["-L" + home + "/lib64", "-lcudart_static", "-ldl", "-lrt", "-lpthread"]
    elif rctx.os.environ.get("MSCCLC_CUDA") == "on":
        # buildifier: disable=print
        print("GPU targets are skipped: no nvcc in $CUDA_HOME/bin, /usr/local/cuda/bin or PATH")
    rctx.file("BUILD.bazel", _BUILD.format(linkopts = repr(linkopts)))
    rctx.file("found.bzl", "FOUND = %r\nCUDA_HOME = %r\nCOMPILES_FAST = %r\n" % (
        home != None,
        home or "",
        home != None and "--Ofast-compile" in rctx.execute([home + "/bin/nvcc", "--help"]).stdout,
    ))

local_cuda = repository_rule(
    implementation = _local_cuda,
    configure = True,
    environ = ["CUDA_HOME", "MSCCLC_CUDA", "PATH"],
    local = True,
)
