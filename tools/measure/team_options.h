// The options of commands that measure on this machine: which device, how many ranks, how long.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/support/result.h"
#include "tools/io/command_line.h"
#include "tools/measure/rank_team.h"

namespace mscclc {

struct TeamChoice {
  std::string device;           ///< threads or cuda; "": cuda where this build has it
  std::vector<uint32_t> ranks;  ///< numbers of them; none: as many as there are GPUs, or 2 threads
  uint32_t batches = 5;
  bool eager = false;                  ///< GPUs: calls are launched one by one, not in graphs
  bool between = false, nccl = false;  ///< as in TeamOptions
  bool gpus() const;
};

/// Declares --device, --ranks (one number, or `several`), --repeats and --eager.
void add_team_options(CommandLine& line, CLI::App& app, TeamChoice& choice, bool several);
/// The numbers of ranks that are asked for, with none what --ranks is without a value. Checks the
/// environment. An error: of the options. Empty: what is wrong is reported.
Result<std::vector<uint32_t>> ranks_of(const TeamChoice& choice, Diagnostics& diagnostics);
/// What so many ranks on one node are to do. REQUIRES: ranks_of() has `ranks`.
TeamOptions options_of(const TeamChoice& choice, uint32_t ranks);
/// Starts the ranks. `ranks_per_node` 0: they are on one node. nullptr: reported. REQUIRES:
/// ranks_of() has `ranks`.
[[nodiscard]] std::unique_ptr<RankTeam> start_team(const TeamChoice& choice, uint32_t ranks,
                                                   uint32_t ranks_per_node,
                                                   Diagnostics& diagnostics);

}  // namespace mscclc
