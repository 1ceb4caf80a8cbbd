"""Options of the backend, as `pg_options` of init_process_group() and new_group()."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """`fallback`: calls that no plan serves go to gloo (cpu) and NCCL (cuda), which is logged, the
    first of a kind with a warning; without it they are errors. All ranks have the same."""

    fallback: bool = False
