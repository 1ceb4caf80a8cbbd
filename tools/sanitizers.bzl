"""What is other in builds with sanitizers."""

# For target_compatible_with: targets that have no place there.
WITHOUT_SANITIZERS = select({
    "//tools:sanitized": ["//tools:needs_a_build_without_sanitizers"],
    "//conditions:default": [],
})

# For local_defines: of a test that tries less there, as more would go through the same code.
TELLS_SANITIZERS = select({
    "//tools:sanitized": ["MSCCLC_SANITIZED"],
    "//conditions:default": [],
})
