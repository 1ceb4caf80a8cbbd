"""Algorithms of MSCCL++, with its names: compile one, register it, select it, or run it in a group.

    import mscclc.mscclpp as mscclpp

    algorithm = mscclpp.compile(algo=program, algo_spec=spec, rank=rank)
    builder = mscclpp.ext.AlgorithmCollectionBuilder()
    builder.add_algorithm_builder(algorithm)             # the registry of the process gets the plan
    builder.set_algorithm_selector(selector)
    algorithm.execute(group.communicator, …)             # or it is run by hand
"""

import enum
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from mscclc._numbers import DTYPES
from mscclc.buffers import Buffer
from mscclc.errors import CompileError, UsageError
from mscclc.registry import Registry
from mscclc.registry import Request as _OurRequest

from mscclc.mscclpp.language.utils import AlgoSpec

__all__ = [
    "Algorithm", "AlgorithmCollection", "AlgorithmCollectionBuilder", "CollectiveBufferMode",
    "CollectiveRequest", "CommGroup", "DataType", "ReduceOp", "compile",
]  # fmt: skip


class DataType(enum.Enum):
    """Element types; values are ours."""

    int32, uint32, float16, float32, bfloat16, uint8 = "i32", "u32", "f16", "f32", "bf16", "u8"
    float8_e4m3fn, float8_e5m2, float8_e4m3b15 = "e4m3", "e5m2", "e4m3b15"


class ReduceOp(enum.Enum):
    """Reductions; NOP: the collective reduces nothing."""

    SUM, MIN, NOP = "sum", "min", "nop"


class CollectiveBufferMode(enum.Enum):
    """Whether input and output are the same memory."""

    ANY, IN_PLACE, OUT_OF_PLACE = range(3)


class Algorithm:
    """A plan with what it is for."""

    class Constraint:
        """Where it may run; 0: anywhere."""

        def __init__(self, world_size: int = 0, n_ranks_per_node: int = 0):
            self.world_size, self.n_ranks_per_node = world_size, n_ranks_per_node

    def __init__(self, name: str, collective: str, plan: str, spec: AlgoSpec):
        self.name, self.collective = name, collective
        self.tags: Dict[str, Any] = dict(spec.tags)
        self.message_size_range: Tuple[int, int] = (spec.min_message_size, spec.max_message_size)
        self.buffer_mode = (
            CollectiveBufferMode.IN_PLACE if spec.in_place else CollectiveBufferMode.OUT_OF_PLACE
        )
        self.constraint = Algorithm.Constraint(spec.world_size, spec.nranks_per_node)
        self.plan = plan  # the text of it
        self._loaded: Dict[Tuple[int, str], Any] = {}  # by communicator and element type

    def is_dsl_algorithm(self) -> bool:
        """True: there are no others here."""
        return True

    def is_native_algorithm(self) -> bool:
        """False."""
        return False

    def execute(
        self, comm: Any, input_buffer: int, output_buffer: int, input_size: int, output_size: int,
        dtype: DataType, op: ReduceOp = ReduceOp.NOP, stream: int = 0, executor: Any = None,
        nblocks: int = 0, nthreads_per_block: int = 0, symmetric_memory: bool = False,
        extras: Any = None, accum_dtype: Optional[DataType] = None,
    ) -> int:  # fmt: skip
        """Runs it on a communicator; all ranks do. Buffers are addresses, sizes are bytes; a stream of
        0 is the default one. What follows the stream is not needed, and must be left as it is. The
        first call of a size, a power of two, waits for the other ranks. Gives 0."""
        if nblocks or nthreads_per_block or symmetric_memory or extras or executor is not None:
            raise UsageError("a plan says itself how it is launched: leave what follows the stream")
        if accum_dtype not in (None, dtype):
            raise UsageError("the type to add up in is that of the plan")
        most = max(input_size, output_size, 1)
        name = dtype.value
        key = (id(comm), name)
        known = self._loaded.get(key)
        if known is None or known[0] is not comm or known[1] < most:
            room = 1 << max(most - 1, 1).bit_length()
            known = self._loaded[key] = (comm, room, comm.load(self.plan, room, name))
        source = Buffer(input_buffer or None, input_size, name, None)
        target = Buffer(output_buffer or None, output_size, name, None)
        reduction = "sum" if op is ReduceOp.NOP else op.value
        known[2]._launch(source, target, reduction, stream or None, name)
        return 0

    def reset(self) -> None:
        """Nothing: a plan keeps no state that its user knows of."""


class CollectiveRequest:
    """What a selector is asked, by the names of MSCCL++."""

    def __init__(self, request: _OurRequest):
        self.collective = request.collective
        self.message_size = request.bytes
        self.world_size = request.ranks
        self.n_ranks_per_node = request.ranks // request.nodes if request.nodes else 0
        self.dtype = next((one for one in DataType if one.value == request.dtype), None)
        self.hints: Dict[str, List[int]] = {}
        self._in_place = request.in_place

    def buffer_mode(self) -> CollectiveBufferMode:
        """Whether the call is in place."""
        modes = CollectiveBufferMode
        return modes.IN_PLACE if self._in_place else modes.OUT_OF_PLACE


class AlgorithmCollection:
    """Algorithms, in the order in which they were added."""

    def __init__(self, algorithms: List[Algorithm]):
        self._algorithms = list(algorithms)

    def __iter__(self) -> Iterator[Algorithm]:
        return iter(self._algorithms)

    def __len__(self) -> int:
        return len(self._algorithms)

    def __getitem__(self, index: int) -> Algorithm:
        return self._algorithms[index]

    def get_by_collective(self, collective: str) -> List[Algorithm]:
        """Those of a collective."""
        return [one for one in self._algorithms if one.collective == collective]

    def register_algorithm(self, collective: str, algo_name: str, algorithm: Algorithm) -> None:
        """Adds one."""
        if (collective, algo_name) != (algorithm.collective, algorithm.name):
            raise UsageError(f"'{algorithm.name}' is of {algorithm.collective}, and has its own name")
        self._algorithms.append(algorithm)


class AlgorithmCollectionBuilder:
    """The algorithms that calls of this process are served by: there is one."""

    _instance: Optional["AlgorithmCollectionBuilder"] = None

    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._algorithms = {}  # collective: name: algorithm
        return cls._instance

    @classmethod
    def reset(cls) -> None:
        """Takes out all of them, and the selector."""
        if cls._instance is None:
            return
        registry = Registry()
        registry.set_selector(None)
        for algorithm in cls._instance.build():
            registry.remove(algorithm.name)
        cls._instance = None

    def add_algorithm_builder(self, algorithm_builder: Algorithm) -> None:
        """Registers an algorithm: on all ranks, before the next call."""
        if not isinstance(algorithm_builder, Algorithm):
            raise ValueError("an Algorithm of compile() is to be added; native ones there are not")
        Registry().register(algorithm_builder.plan, algorithm_builder.name)
        of_collective = self._algorithms.setdefault(algorithm_builder.collective, {})
        of_collective[algorithm_builder.name] = algorithm_builder

    def set_algorithm_selector(self, selector: Optional[Callable[..., Any]]) -> None:
        """`selector(algorithms, request)`, where `algorithms[collective][name]` are those that were
        added: the one for a call, or None: what the registry would pick. It must give the same on
        all ranks; so a request has no rank, buffers or stream."""
        if selector is None:
            Registry().set_selector(None)
            return

        def answer(request):
            found = selector(self._algorithms, CollectiveRequest(request))
            return None if found is None else found.name

        Registry().set_selector(answer)

    def build(self) -> AlgorithmCollection:
        """All that were added."""
        return AlgorithmCollection([one for of in self._algorithms.values() for one in of.values()])


class CommGroup:
    """Ranks of MPI or torch.distributed, as a communicator. `device`, which MSCCL++ does not have:
    the GPU; None: the host."""

    def __init__(
        self, mpi_comm: Any = None, torch_group: Any = None, interfaceIpPortTrio: str = "",
        rank: Optional[int] = None, size: Optional[int] = None, *, device: Optional[int] = None,
    ):  # fmt: skip
        from mscclc.communicator import Communicator, id_of_group

        if mpi_comm is not None:
            self.communicator = Communicator.from_mpi(mpi_comm, device=device)
        elif torch_group is not None:
            id = id_of_group(torch_group)
            ranks, rank = torch_group.size(), torch_group.rank()
            self.communicator = Communicator(ranks, id, rank, device=device)
        else:
            raise UsageError(
                "a group is made of mpi_comm or torch_group; of ranks that meet at an address, by"
                " mscclc.Communicator.from_environment()"
            )
        self.my_rank, self.nranks = self.communicator.rank, self.communicator.size

    def barrier(self) -> None:
        """Waits for all ranks."""
        self.communicator.barrier()


def compile(algo: Callable[..., Any], algo_spec: AlgoSpec, rank: int, **kwds: Any) -> Algorithm:
    """Compiles the CollectiveProgram that `algo(algo_spec, **kwds)` traces, with passes and proof.

    The plan is one for all ranks, so `rank` only has to be one of them.
    """
    from mscclc.mscclpp.command import compile_program
    from mscclc.mscclpp.failures import message_of

    if not callable(algo):
        raise ValueError("The 'algo' argument must be a callable (e.g., a function or class).")
    if not 0 <= rank < algo_spec.world_size:
        raise UsageError(f"rank {rank} of {algo_spec.world_size} ranks")
    program = algo(algo_spec, **kwds)
    try:
        plan = compile_program(program, "plan", True)
    except RuntimeError as error:
        text = message_of(error)
        if not text:
            raise
        raise CompileError(text) from None
    return Algorithm(algo_spec.name, algo_spec.collective.name, plan, algo_spec)
