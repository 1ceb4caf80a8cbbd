"""What is other in builds with sanitizers; tests themselves ask ir/base/sanitized.h."""

# For target_compatible_with: targets that have no place there.
WITHOUT_SANITIZERS = select({
    "//tools:sanitized": ["//tools:needs_a_build_without_sanitizers"],
    "//conditions:default": [],
})
