// Where launchers say which rank a process is, and of which job: the one table of them.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "runtime/support/environment/environment.h"

namespace mscclc {

/// A launcher's names for the same things. `job` distinguishes a job from others.
struct LauncherNames {
  std::string_view launcher;
  Variable rank, size, size_else, local_rank;
  std::optional<Variable> local_size, machines;
  std::array<Variable, 2> job;
};

inline constexpr LauncherNames kLaunchers[] = {
    {"MSCCLC_RANK",
     Variable::MSCCLC_RANK,
     Variable::MSCCLC_WORLD_SIZE,
     Variable::MSCCLC_WORLD_SIZE,
     Variable::MSCCLC_LOCAL_RANK,
     std::nullopt,
     std::nullopt,
     {Variable::MASTER_PORT, Variable::MASTER_PORT}},
    {"torchrun",
     Variable::RANK,
     Variable::WORLD_SIZE,
     Variable::WORLD_SIZE,
     Variable::LOCAL_RANK,
     Variable::LOCAL_WORLD_SIZE,
     std::nullopt,
     {Variable::TORCHELASTIC_RUN_ID, Variable::MASTER_PORT}},
    {"Open MPI",
     Variable::OMPI_COMM_WORLD_RANK,
     Variable::OMPI_COMM_WORLD_SIZE,
     Variable::OMPI_COMM_WORLD_SIZE,
     Variable::OMPI_COMM_WORLD_LOCAL_RANK,
     Variable::OMPI_COMM_WORLD_LOCAL_SIZE,
     std::nullopt,
     {Variable::PMIX_NAMESPACE, Variable::OMPI_MCA_ess_base_jobid}},
    {"Slurm",
     Variable::SLURM_PROCID,
     Variable::SLURM_STEP_NUM_TASKS,
     Variable::SLURM_NTASKS,
     Variable::SLURM_LOCALID,
     std::nullopt,
     Variable::SLURM_STEP_NUM_NODES,
     {Variable::SLURM_JOB_ID, Variable::SLURM_STEP_ID}},
};

/// What else says where the ranks of a job meet.
inline constexpr Variable kMeetingPlaces[] = {Variable::MSCCLC_ID, Variable::MSCCLC_SECRET,
                                              Variable::MSCCLC_PORT, Variable::MASTER_ADDR,
                                              Variable::MASTER_PORT};
/// Distinguishes the starts of a job; it is used for nothing else.
inline constexpr std::string_view kStartOfJob = "TORCHELASTIC_RESTART_COUNT";

}  // namespace mscclc
