"""Files that a program carries in itself, as string literals that C++ includes."""

def literals(name, srcs, out, named = False):
    """Writes out: a literal for each file and a comma after it, in the order of the names; named: each as {"name", literal}."""
    opening, closing = ("{\"%s\", ", "}") if named else ("", "")
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [out],
        cmd = "for f in $(SRCS); do printf '%sR\"file(' %s && cat $$f && printf ')file\"%s,\\n'; done > $@" %
              (opening, "$$(basename $$f)" if named else "", closing),
    )

def literal(name, src, out):
    """Writes out: one literal of one file."""
    native.genrule(
        name = name,
        srcs = [src],
        outs = [out],
        cmd = "(printf 'R\"file(' && cat $< && printf ')file\"\\n') > $@",
    )
