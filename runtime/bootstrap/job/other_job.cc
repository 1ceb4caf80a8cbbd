#include "runtime/bootstrap/job/other_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "runtime/bootstrap/job/launchers.h"
#include "runtime/support/process/proc.h"

namespace mscclc {
namespace {

bool says_rank(std::string_view name) {
  return std::ranges::any_of(kLaunchers,
                             [&](const LauncherNames& l) { return info(l.rank).name == name; });
}

/// Whether a variable distinguishes jobs, or their starts.
bool says_job(std::string_view name) {
  const auto is_it = [&](Variable variable) { return info(variable).name == name; };
  return name == kStartOfJob || std::ranges::any_of(kMeetingPlaces, is_it) ||
         std::ranges::any_of(kLaunchers, [&](const LauncherNames& l) {
           return is_it(l.size) || is_it(l.size_else) || std::ranges::any_of(l.job, is_it);
         });
}

/// What of a process's environment makes it this rank of a job; empty: nothing.
std::vector<std::string> claim_of(int32_t process, uint32_t rank) {
  std::vector<std::string> claim;
  bool is_rank = false;
  for (std::string& entry : entries_of(process, "environ")) {
    const size_t end = std::min(entry.find('='), entry.size());
    const std::string_view name = std::string_view(entry).substr(0, end);
    if (!says_rank(name) && !says_job(name)) continue;
    is_rank |= says_rank(name) && entry.substr(end) == fmt::format("={}", rank);
    claim.push_back(std::move(entry));
  }
  if (!is_rank) claim.clear();
  std::sort(claim.begin(), claim.end());
  return claim;
}

/// The program, and for one that runs scripts the script: a monitor beside each rank may be written
/// in the same language.
std::vector<std::string> work_of(int32_t process) {
  std::vector<std::string> work = {program_of(process)};
  const std::string name = work[0].substr(work[0].rfind('/') + 1);
  if (name.rfind("python", 0) != 0) return work;
  const std::vector<std::string> line = entries_of(process, "cmdline");
  for (size_t i = 1; i < line.size(); ++i) {
    work.push_back(line[i]);
    if (line[i].rfind('-', 0) != 0) break;
  }
  return work;
}

/// Whether `older` is `process` or one that it descends from.
bool descends(int32_t process, int32_t older) {
  // Bounded, as numbers of processes that end meanwhile are given again.
  for (int i = 0; i < 64 && process > 0; ++i) {
    if (process == older) return true;
    const auto facts = facts_of(process);
    if (!facts) return false;
    process = facts->parent;
  }
  return false;
}

struct KnownRank {
  RankProcess rank;
  std::vector<std::string> claim, work;
};

bool is_twin(int32_t other, const KnownRank& known) {
  const int32_t process = known.rank.process;
  return claim_of(other, known.rank.rank) == known.claim && work_of(other) == known.work &&
         !descends(other, process) && !descends(process, other);
}

}  // namespace

OtherJob find_other_job(const std::vector<RankProcess>& ranks) {
  OtherJob found;
  std::vector<KnownRank> known;
  std::optional<uint64_t> first;
  for (const RankProcess& rank : ranks) {
    const auto facts = facts_of(rank.process);
    if (!facts) continue;
    first = std::min(first.value_or(facts->began), facts->began);
    known.push_back({rank, claim_of(rank.process, rank.rank), work_of(rank.process)});
    if (known.back().claim.empty()) return found;
  }
  if (!first) return found;
  for (const int32_t other : own_processes()) {
    const auto is_it = [other](const RankProcess& rank) { return rank.process == other; };
    if (std::any_of(ranks.begin(), ranks.end(), is_it)) continue;
    // What is left of an earlier start of the job is older.
    const auto facts = facts_of(other);
    if (!facts || facts->state == 'Z' || facts->began < *first) continue;
    for (const KnownRank& one : known) {
      if (!is_twin(other, one)) continue;
      found.processes.push_back(other);
      if (!found.why.empty()) continue;
      found.why = fmt::format(
          "two jobs have the same name: process {} was started as the same rank as process {}, and "
          "nothing shows which of the other ranks belong to which. Give each job a MASTER_PORT, "
          "MSCCLC_SECRET or MSCCLC_ID of its own",
          other, one.rank.process);
    }
  }
  return found;
}

}  // namespace mscclc
