"""A plug-in of pytest: TorchComms' suite tries what it knows a backend to have, by lists of names in its
classes. Ours in C++ has all that is listed so."""

import os


def pytest_collection_modifyitems(items):
    """Adds the name, where the one in C++ is under test."""
    if "TORCHCOMMS_BACKEND_LIB_PATH_MSCCLC" not in os.environ:
        return
    for item in items:
        if isinstance(names := getattr(item.cls, "SUPPORTED_BACKENDS", None), set):
            names.add("mscclc")
