"""The sources that a program is made of, as data of a test."""

_Sources = provider(fields = ["files"])

def _aspect_impl(target, ctx):
    if ctx.rule.kind == "genrule":  # what makes a source is no part of the program
        return [_Sources(files = depset())]
    files = []
    below = []
    for attribute in ["srcs", "hdrs"]:
        for source in getattr(ctx.rule.attr, attribute, []):
            files += [f for f in source.files.to_list() if f.is_source]
    for attribute in ["deps", "srcs"]:  # srcs: sources that are joined
        attributes = getattr(ctx.rule.attr, attribute, [])
        below += [d[_Sources].files for d in attributes if _Sources in d]
    return [_Sources(files = depset(files, transitive = below))]

_sources_aspect = aspect(
    implementation = _aspect_impl,
    attr_aspects = ["deps", "srcs"],
    # Joined sources are files that a rule makes of others.
    apply_to_generating_rules = True,
)

def _sources_impl(ctx):
    files = depset(transitive = [p[_Sources].files for p in ctx.attr.programs])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

sources = rule(
    implementation = _sources_impl,
    attrs = {"programs": attr.label_list(aspects = [_sources_aspect])},
)
