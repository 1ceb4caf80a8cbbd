// Which rank this process is, and where the ranks meet, from what torchrun, Open MPI's mpirun,
// Slurm's srun or the user set in the environment (docs/environment.md).
//
//   const auto launched = read_launch("", diagnostics);
//   auto bootstrap = launched ? make_bootstrap(*launched, diagnostics) : nullptr;
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/api/job.h"
#include "runtime/support/address/rendezvous.h"

namespace mscclc {

struct LaunchedRank {
  std::string launcher;  ///< what said so: "torchrun", "Open MPI", "Slurm", "MSCCLC_RANK"
  uint32_t rank = 0, size = 0;
  std::optional<uint32_t> local_rank;  ///< among the ranks of this machine
  Rendezvous where;
  bool one_machine = false;     ///< all ranks run here: they meet at a unix socket
  bool by_environment = false;  ///< read_launch() has made it
  bool by_id = false;           ///< `where` is a unique id, which another process may serve
  std::chrono::milliseconds timeout{0}, silence{0};
  Diagnostics wrong = {};  ///< with these: then by default, as the others wait for this rank
};

/// Reads the process's environment; not to be called while another thread changes it.
/// `group`: bootstraps that a job makes at the same time need names that differ, the same name on
/// all their ranks. Errors: bad-variable, no-launcher (nothing says which rank this
/// is), no-rendezvous (nothing says where ranks meet). Warns, at rank 0: guessable-secret.
[[nodiscard]] std::optional<LaunchedRank> read_launch(std::string_view group,
                                                      Diagnostics& diagnostics);

/// Collective: rank 0's process runs the hub; returns when all ranks are here. Errors:
/// cannot-listen, foreign-id (MSCCLC_ID has another machine's address, and nothing serves it
/// there), what is `wrong`, which the others learn, and those of join_job().
[[nodiscard]] std::unique_ptr<Bootstrap> make_bootstrap(const LaunchedRank& launch,
                                                        Diagnostics& diagnostics);

/// How to host a job, as the process's environment says: interface, timeout and silence. Errors
/// (bad-variable).
[[nodiscard]] std::optional<HostOptions> read_host_options(Diagnostics& diagnostics);
/// The same for a rank of a job, for which the others wait: by default, if anything is wrong.
[[nodiscard]] HostOptions host_options_to_meet(Diagnostics& wrong);

}  // namespace mscclc
