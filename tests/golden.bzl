"""Tests by tests/golden_runner.cc: golden_test, one target per folder of tests/golden; document_test."""

load("//tools:sanitizers.bzl", "with_phase")

def golden_test(name, folder, data = [], **kwargs):
    """Runs the golden cases under tests/golden/<folder>.

    Args:
      name: the target.
      folder: the folder's name.
      data: files elsewhere that the commands read.
      **kwargs: for cc_test.
    """
    native.cc_test(
        name = name,
        args = [
            "$(rootpath //tools:mscclc)",
            "tests/golden/" + folder,
        ],
        data = native.glob(["golden/" + folder + "/**"]) + ["//tools:mscclc"] + data,
        deps = [":golden_runner"],
        **with_phase(kwargs)
    )

def document_test(name, documents, **kwargs):
    """Runs the commands that documents show.

    Args:
      name: the target.
      documents: labels of .md files, or of groups of them.
      **kwargs: for cc_test.
    """
    native.cc_test(
        name = name,
        args = ["$(rootpath //tools:mscclc)"] + ["$(rootpaths %s)" % file for file in documents],
        data = documents + ["//plans:examples", "//plans:library", "//plans:rows", "//tools:mscclc"],
        deps = [":golden_runner"],
        **with_phase(kwargs)
    )
