"""Programs that are copied to the machine that runs them."""

# No shared libraries of the machine that built them; sanitizers need theirs.
STATIC_LINKOPTS = select({
    "//tools:sanitized": [],
    "//conditions:default": ["-static"],
})
