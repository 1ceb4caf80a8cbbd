"""golden_test: one test target per folder of tests/golden (tests/golden_runner.cc)."""

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
        **kwargs
    )
