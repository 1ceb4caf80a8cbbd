"""What is other in builds with sanitizers, and which tests ./test runs without them; tests themselves ask
ir/support/sanitized.h."""

# For target_compatible_with: targets that have no place there.
WITHOUT_SANITIZERS = select({
    "//tools:sanitized": ["//tools:needs_a_build_without_sanitizers"],
    "//conditions:default": [],
})

# The tag of tests that show something without sanitizers that they do not show with the address
# sanitizer: it leaves them out, or they try less with it. ./test runs only these without it, and with it
# all that it does not leave out. A test whose code is another under sanitizers has the tag in its BUILD file.
_PLAIN = "plain"

# Packages whose tests run thread blocks on fibers, nearly all of their time: the address sanitizer does not
# look there for uses of locals after their functions' return, for which it maps 3 MB for each fiber (half of
# the time of such a test). Tests of all other packages do look for them.
_ON_FIBERS = [
    "executor/cuda/testing",
    "tests/compiled",
    "tests/compiled/on_host",
    "tests/engines",
    "tests/library",
    "tests/property",
    "tests/rows",
]

_ASKED = "//ir/support:sanitized"

def tries_less(deps):
    """Whether these are dependencies of a test, or of a library of test cases, that tries less with sanitizers."""
    if type(deps) != "list":
        return False
    for dep in deps:
        library = native.existing_rule(dep[1:]) if dep.startswith(":") else None
        if dep == _ASKED or (library and _PLAIN in library["tags"]):
            return True
    return False

def with_sanitizer_options(kwargs):
    """The arguments of a test, with its options of the address sanitizer."""
    if native.package_name() not in _ON_FIBERS:
        return kwargs
    return dict(kwargs, env = dict(kwargs.get("env", {}), ASAN_OPTIONS = "detect_stack_use_after_return=0"))

def with_phase(kwargs):
    """The arguments of a test, or of a library of test cases, with the tag if it has to run without sanitizers."""
    if "target_compatible_with" not in kwargs and not tries_less(kwargs.get("deps", [])):
        return kwargs
    return dict(kwargs, tags = kwargs.get("tags", []) + [_PLAIN])

def sh_test(name, given = [], **kwargs):
    """Bazel's, for all BUILD files. Small, and of name.sh, unless `size` and `srcs` say otherwise. The files
    `given` are its arguments, in this order, and among its data."""
    own = {"size": "small", "srcs": [name + ".sh"]}
    if given:
        own["args"] = ["$(location %s)" % file for file in given]
        kwargs = dict(kwargs, data = given + kwargs.get("data", []))
    native.sh_test(name = name, **with_phase(dict(own, **kwargs)))
