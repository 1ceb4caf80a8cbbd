from mscclpp.language import *

print("tracing")


def get_compact():
    """The plan once more, on one line."""
    from mscclpp.language.internal.globals import get_program

    return get_program().to_json(indent=None)


with CollectiveProgram("talkative", AllGather(1, 1, False), 1):
    rank = Rank(0)
    rank.copy(rank.get_output_buffer()[0:1], rank.get_input_buffer()[0:1], tb=0)
    print(JSON())
    print("{ no plan }")
    print(get_compact())
print("done")
