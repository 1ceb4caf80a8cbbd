"""One text of a header and all that it includes (amalgamate.cc)."""

def _amalgamated(ctx):
    headers = depset(transitive = [d[CcInfo].compilation_context.headers for d in ctx.attr.deps])
    ctx.actions.run(
        executable = ctx.executable._tool,
        arguments = [ctx.attr.root, ctx.outputs.text.path, ctx.outputs.digest.path],
        inputs = headers,
        outputs = [ctx.outputs.text, ctx.outputs.digest],
        mnemonic = "Amalgamate",
    )

amalgamated = rule(
    implementation = _amalgamated,
    attrs = {
        "root": attr.string(doc = "the header, from the workspace's root"),
        "deps": attr.label_list(providers = [CcInfo]),
        "text": attr.output(),
        "digest": attr.output(),
        "_tool": attr.label(
            default = "//executor/compiled:amalgamate",
            executable = True,
            cfg = "exec",
        ),
    },
)
