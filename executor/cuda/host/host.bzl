"""Device code (.cu) compiled for the host, where threads of blocks are fibers."""

# What code says that is written for nvcc; memory that is read in words of several sizes.
HOST_DEVICE_COPTS = [
    "-include",
    "executor/cuda/host/cuda_words.h",
    "-Iexecutor/cuda/host/include",
    "-fno-strict-aliasing",
    "-Wno-unknown-pragmas",
    # g++ does not see that what is used has been set, in templates of rows and places.
    "-Wno-maybe-uninitialized",
    "-Wno-uninitialized",
    "-Wno-unused-function",
    # clang says so of loops that it does not unroll.
    "-Wno-pass-failed",
    # The source is an #include to it.
    "-Wno-subobject-linkage",
]

# For `env` of tests that run them: with the address sanitizer each fiber, of which there are thousands,
# would map and unmap a second stack to find uses of frames that are gone.
HOST_DEVICE_ENV = {"ASAN_OPTIONS": "detect_stack_use_after_return=0"}

def host_device_library(name, srcs = [], cu_srcs = [], hdrs = [], deps = [], **kwargs):
    """A cc_library of sources that are written for nvcc.

    Args:
      name: the target.
      srcs: .cc files.
      cu_srcs: .cu files, each compiled alone.
      hdrs: headers.
      deps: cc targets.
      **kwargs: passed to the cc_library.
    """
    generated = []
    for source in cu_srcs:
        out = name + "_" + source.replace(".cu", ".cc").replace("/", "_").replace(":", "_").strip("_")
        native.genrule(
            name = out + "_source",
            srcs = [source],
            outs = [out],
            cmd = "echo '#include \"$(execpath %s)\"' > $@" % source,
            testonly = kwargs.get("testonly", False),
        )
        generated.append(out)
    native.cc_library(
        name = name,
        srcs = srcs + generated,
        hdrs = hdrs,
        textual_hdrs = cu_srcs,
        copts = HOST_DEVICE_COPTS,
        deps = deps + ["//executor/cuda/host"],
        **kwargs
    )
