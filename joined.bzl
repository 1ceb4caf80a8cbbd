"""Several sources in one compilation. Most of what a file costs is the parsing of headers and the
instantiation of the same templates, which the files of one library, and the tests of one folder,
share. So each library hands the compiler files of several of its sources one after another, each
under a #line that names it. The tests of a folder share such objects; each test runs its own cases.
What nearly all include is parsed once for all (tools/build_rules/precompiled.bzl).

BUILD files load these cc_library and cc_test, through layers.bzl, not Bazel's own. Only `--config=joined` joins; without it each source is compiled
alone (DEVELOPERS.md)."""

load("//tools:sanitizers.bzl", "tries_less", "with_phase", "with_sanitizer_options")

# Sources of one compilation, at most: two cores stay busy, and a compiler stays below 1 GB.
_MOST = 8

_JOINED = "//tools:joined"

_PRECOMPILED = "//tools:precompiled"

# Headers that are parsed before: what nearly all include, and that with Catch2's.
_PARSED = {
    "common": "precompiled",
    "test": "precompiled_for_tests",
}

# What g++ 12 takes for errors inside of the standard library, once it comes precompiled.
_GUESSES = [
    "-Wno-array-bounds",
    "-Wno-dangling-pointer",
    "-Wno-maybe-uninitialized",
    "-Wno-restrict",
    "-Wno-stringop-overflow",
    "-Wno-stringop-overread",
    "-Wno-use-after-free",
]

# What a test may have without being compiled alone; the rest could make its object another.
_SHAREABLE = ["data", "deps", "env", "flaky", "linkopts", "shard_count", "size", "srcs", "tags", "target_compatible_with", "timeout", "visibility"]

# g++ takes all that #line names for headers, whose types should have no parts from an anonymous
# namespace.
_HEAD = """#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif
"""

def _joined_source_impl(ctx):
    files = [f for f in ctx.files.srcs if f.extension == "cc"]
    script = "".join([
        "printf '#line 1 \"%%s\"\\n' %s\ncat %s\n" % (f.short_path, f.path)
        for f in files
    ])
    ctx.actions.run_shell(
        command = "{\ncat <<'END'\n%sEND\n%s} > %s" % (_HEAD, script, ctx.outputs.out.path),
        inputs = files,
        outputs = [ctx.outputs.out],
        mnemonic = "JoinSources",
    )

_joined_source = rule(
    implementation = _joined_source_impl,
    doc = "Writes one source that consists of several.",
    attrs = {
        "out": attr.output(),
        "srcs": attr.label_list(allow_files = True),
    },
)

def _groups(files):
    """Parts of at most _MOST files, as even as can be."""
    count = (len(files) + _MOST - 1) // _MOST
    return [
        files[len(files) * i // count:len(files) * (i + 1) // count]
        for i in range(count)
    ]

def _join(name, srcs, testonly, ending):
    """What stands for these sources: those of this package joined, whatever else as it is."""
    files = [s for s in srcs if s.endswith(".cc") and ":" not in s]
    groups = _groups(files)
    if len(files) == len(groups):
        return srcs
    joined = []
    for i, group in enumerate(groups):
        unit = "%s_joined_%d" % (name, i + 1)
        _joined_source(
            name = unit,
            srcs = group,
            out = unit + ending,
            tags = ["manual"],
            testonly = testonly,
            visibility = ["//visibility:private"],
        )
        joined.append(unit + ending)
    return [s for s in srcs if s not in files] + select({
        _JOINED: joined,
        "//conditions:default": files,
    })

def _with_common_headers(srcs, kwargs, kind = "common"):
    """The arguments of a target with these C++ sources, and the headers that are parsed before them."""
    cxx = type(srcs) == "list" and [s for s in srcs if s.endswith(".cc")]
    if not cxx or [s for s in srcs if s.endswith(".c")] or native.package_name().startswith("third_party"):
        return kwargs
    return dict(
        kwargs,
        copts = kwargs.get("copts", []) + select({
            _PRECOMPILED: ["-include", "tools/build_rules/%s.h" % _PARSED[kind]] + _GUESSES,
            "//conditions:default": [],
        }),
        deps = kwargs.get("deps", []) + select({
            _PRECOMPILED: ["//tools/build_rules:%s_headers" % kind],
            "//conditions:default": [],
        }),
    )

def _there(file):
    return native.glob([file], allow_empty = True)

def cc_library(name, srcs = None, **kwargs):
    """Bazel's, with the sources of this package joined. Without srcs and hdrs: of name.cc and name.h, as far as
    these are there."""
    if srcs == None and "hdrs" not in kwargs:
        kwargs["hdrs"] = _there(name + ".h")
        srcs = _there(name + ".cc")
    srcs = srcs or []
    if tries_less(kwargs.get("deps", [])):
        kwargs = with_phase(kwargs)
    kwargs = _with_common_headers(srcs, kwargs)
    if type(srcs) == "list":
        srcs = _join(name, srcs, kwargs.get("testonly", False), ".cc")
    native.cc_library(name = name, srcs = srcs, **kwargs)

def joined_tests(apart):
    """Objects for the tests of this folder, except those apart: x_test.cc of the target x_test each."""
    files = native.glob(["*_test.cc"], exclude = apart)
    for i, group in enumerate(_groups(files)):
        tests = [f[:-len(".cc")] for f in group]
        name = "tests_joined_%d" % (i + 1)
        out = "tests_joined_%d_test.cc" % (i + 1)  # _test.cc: with the options of tests
        _joined_source(
            name = name + "_source",
            srcs = [":%s_source" % t for t in tests],
            out = out,
            tags = ["manual"],
            testonly = True,
        )
        native.cc_library(
            name = name,
            srcs = [out],
            alwayslink = True,
            linkstatic = True,
            tags = ["manual"],
            testonly = True,
            **_with_common_headers(files, {"deps": [":%s_deps" % t for t in tests]}, "test")
        )

def _object_of(test):
    """The object that joined_tests() gave this test a place in."""
    for i in range(100):
        name = "tests_joined_%d" % (i + 1)
        source = native.existing_rule(name + "_source")
        if not source:
            return None
        if ":%s_source" % test in source["srcs"]:
            return ":" + name
    return None

def cc_test(name, **kwargs):
    """Bazel's; in place of its source the object that it shares, of which it runs its own cases. Small, and of
    name.cc, unless `size` and `srcs` say otherwise."""
    kwargs = with_sanitizer_options(with_phase(dict({"size": "small", "srcs": [name + ".cc"]}, **kwargs)))
    home = _object_of(name)
    srcs = kwargs.get("srcs", [])
    deps = kwargs.get("deps", [])
    plain = type(srcs) == "list" and type(deps) == "list"
    shared = (home and plain and name + ".cc" in srcs and
              not [s for s in srcs if s.endswith(".cc") and s != name + ".cc"] and
              not [a for a in kwargs if a not in _SHAREABLE])
    if home:
        native.filegroup(
            name = name + "_source",
            srcs = [name + ".cc"] if shared else [],
            tags = ["manual"],
            testonly = True,
        )
        native.cc_library(
            name = name + "_deps",
            hdrs = [s for s in srcs if s != name + ".cc"] if shared else [],
            linkopts = kwargs.get("linkopts", []) if shared else [],
            tags = ["manual"],
            testonly = True,
            deps = deps if shared else [],
        )
    if not shared:
        catch = type(deps) == "list" and "//third_party:catch2_main" in deps
        kwargs = _with_common_headers(srcs, kwargs, "test" if catch else "common")
        if type(srcs) == "list":
            kwargs["srcs"] = _join(name, srcs, True, "_test.cc")
        native.cc_test(name = name, **kwargs)
        return
    native.cc_test(
        name = name,
        srcs = select({_JOINED: [], "//conditions:default": srcs}),
        # Catch2 makes a tag of each file's name. Hidden cases stay hidden, and no cases are an error.
        args = select({
            _JOINED: ["--filenames-as-tags", "[#%s]~[.]" % name, "--warn", "NoTests"],
            "//conditions:default": [],
        }),
        deps = select({_JOINED: [home], "//conditions:default": deps}),
        **{k: v for k, v in kwargs.items() if k not in ["srcs", "deps"]}
    )
