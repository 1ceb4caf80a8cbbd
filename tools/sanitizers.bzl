"""Targets that have no place in the builds of sanitizers."""

# For target_compatible_with.
WITHOUT_SANITIZERS = select({
    "//tools:sanitized": ["//tools:needs_a_build_without_sanitizers"],
    "//conditions:default": [],
})
