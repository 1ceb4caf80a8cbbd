"""Headers that the compiler has parsed once for a configuration, in place of once for each file."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_headers_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    name = ctx.label.name
    header = ctx.actions.declare_file(name + ".h")
    ctx.actions.symlink(output = header, target_file = ctx.file.header)

    # g++ and clang look for x.h.gch beside x.h, and take what fits in a folder of this name: its macros
    # are others without optimisation.
    parsed = []
    for variant, flags in [("optimised", []), ("unoptimised", ["-O0", "-U_FORTIFY_SOURCE"])]:
        out = ctx.actions.declare_file("%s.h.gch/%s" % (name, variant))
        variables = cc_common.create_compile_variables(
            cc_toolchain = toolchain,
            feature_configuration = features,
            output_file = out.path,
            source_file = ctx.file.header.path,
            use_pic = True,
            quote_include_directories = depset(["."]),
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + flags +
                                 ["-x", "c++-header"],
        )
        ctx.actions.run(
            arguments = cc_common.get_memory_inefficient_command_line(
                action_name = CPP_COMPILE_ACTION_NAME,
                feature_configuration = features,
                variables = variables,
            ),
            env = cc_common.get_environment_variables(
                action_name = CPP_COMPILE_ACTION_NAME,
                feature_configuration = features,
                variables = variables,
            ),
            executable = cc_common.get_tool_for_action(
                action_name = CPP_COMPILE_ACTION_NAME,
                feature_configuration = features,
            ),
            inputs = depset([ctx.file.header] + ctx.files.srcs, transitive = [toolchain.all_files]),
            mnemonic = "PrecompileHeaders",
            outputs = [out],
        )
        parsed.append(out)
    return [DefaultInfo(files = depset([header] + parsed))]

precompiled_headers = rule(
    implementation = _precompiled_headers_impl,
    doc = "Makes NAME.h of a header, which compilations that include it take as parsed.",
    attrs = {
        "header": attr.label(allow_single_file = [".h"]),
        "srcs": attr.label_list(allow_files = [".h"], doc = "Headers of ours that it includes."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
