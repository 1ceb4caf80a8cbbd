"""CUDA code in the build: cuda_library compiles .cu files with nvcc.

    load("//third_party:cuda.bzl", "cuda_library")

    cuda_library(
        name = "kernel",
        srcs = ["kernel.cu"],
        hdrs = ["kernel.h"],
        deps = ["//executor:layout"],
    )

The GPU part is off unless asked for with `--config=cuda` (`--config=cuda_release` for all
architectures, `--config=cuda_check` for a build that shows that everything compiles, and whose kernels
are slow). Where it is off, or nvcc is missing, these
targets and all that depend on them are incompatible: `//...` skips them (tests show as SKIPPED),
asking for one by name says why. Plain cc_library, cc_binary and cc_test may depend on them.
"""

load("@local_cuda//:found.bzl", "COMPILES_FAST", "CUDA_HOME", "FOUND")

# One binary per architecture, and PTX of the last for newer ones. Each takes minutes to compile: by
# default only the one that we measure on is made, with --config=cuda_release all.
CUDA_ARCHS = ["90"]
CUDA_RELEASE_ARCHS = ["80", "90", "100"]

def _headers(deps):
    return depset(transitive = [d[CcInfo].compilation_context.headers for d in deps])

def _include_flags(deps):
    flags = ["-I."]
    for d in deps:
        c = d[CcInfo].compilation_context
        flags += ["-I" + p for p in c.quote_includes.to_list() + c.includes.to_list()]
        flags += ["-isystem=" + p for p in c.system_includes.to_list()]
        flags += ["-D" + m for m in c.defines.to_list()]
    return flags

def _cuda_objects(ctx):
    flags = _include_flags(ctx.attr.deps)
    objects = []
    for src in ctx.files.srcs:
        out = ctx.actions.declare_file("%s/%s.pic.o" % (ctx.label.name, src.basename))
        ctx.actions.run(
            executable = CUDA_HOME + "/bin/nvcc",
            arguments = ["-c", src.path, "-o", out.path] + ctx.attr.copts + flags,
            inputs = depset(ctx.files.srcs + ctx.files.hdrs, transitive = [_headers(ctx.attr.deps)]),
            outputs = [out],
            mnemonic = "Nvcc",
            progress_message = "Compiling %s with nvcc" % src.short_path,
            use_default_shell_env = True,
        )
        objects.append(out)
    return [DefaultInfo(files = depset(objects))]

cuda_objects = rule(
    implementation = _cuda_objects,
    doc = "Compiles each .cu file to a position-independent object.",
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
    },
)

def _arch_copts(archs):
    copts = ["-gencode=arch=compute_%s,code=sm_%s" % (arch, arch) for arch in archs]
    return copts + ["-gencode=arch=compute_%s,code=compute_%s" % (archs[-1], archs[-1])]

def _default_copts():
    copts = ["-std=c++20", "-O3", "-lineinfo", "--expt-relaxed-constexpr", "-Xcompiler=-fPIC"]
    copts += ["--compress-mode=size"]  # a fifth of the size
    return copts + select({
        "//third_party/cuda:release": _arch_copts(CUDA_RELEASE_ARCHS),
        "//conditions:default": _arch_copts(CUDA_ARCHS),
    }) + select({
        "//third_party/cuda:check": ["--Ofast-compile=max"] if COMPILES_FAST else [],
        "//conditions:default": [],
    }) + select({
        "//third_party/cuda:without_stamps": ["-DMSCCLC_NO_STAMPS"],
        "//conditions:default": [],
    })

def gpu_compatibility():
    """What `target_compatible_with` of a GPU target is: empty if it can be built."""
    missing = [] if FOUND else ["//third_party/cuda:nvcc_not_found_set_CUDA_HOME"]
    return select({
        "//third_party/cuda:on": missing,
        "//conditions:default": ["//third_party/cuda:add_config_cuda_to_build_gpu_targets"],
    })

def cuda_library(name, srcs, hdrs = [], deps = [], copts = [], **kwargs):
    """A cc_library whose sources are .cu files, linked with the CUDA runtime.

    Args:
      name: the target.
      srcs: .cu files.
      hdrs: headers, also those private to the sources.
      deps: cc targets.
      copts: more options for nvcc.
      **kwargs: passed to the cc_library.
    """
    cuda_objects(
        name = name + "_objects",
        srcs = srcs,
        hdrs = hdrs,
        copts = _default_copts() + copts,
        testonly = kwargs.get("testonly", False),
        target_compatible_with = gpu_compatibility(),
        visibility = ["//visibility:private"],
        deps = deps,
    )
    native.cc_library(
        name = name,
        srcs = [name + "_objects"],
        linkstatic = True,
        hdrs = hdrs,
        target_compatible_with = gpu_compatibility(),
        deps = deps + ["@local_cuda//:cudart"],
        **kwargs
    )
