// Why a call takes what it takes: time, bound, critical path, traffic, scratch and synchronisation
// of a plan on a machine, as values, as text and as JSON. What only the compiler knows (what passes
// did, what else the library has) its callers add.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/cost/bound.h"
#include "executor/cost/critical_path.h"
#include "executor/cost/model.h"

namespace mscclc::cost {

/// A part of the critical path in words.
struct PathLine {
  Cause cause = Cause::launch;
  double begin_us = 0, end_us = 0;
  uint32_t rank = 0, block = 0;
  uint32_t times = 1;  ///< such parts that follow one another, as in rounds of a pipeline
  std::string op;      ///< as the author wrote it; "" for the launch
  std::string place;   ///< "ring.mscl:27:14", or "" if it is not known
};

/// Bytes over one kind of link, of the GPU (or node) that has most.
struct TrafficLine {
  std::string link;
  uint64_t bytes = 0;
  std::optional<uint64_t> least;  ///< that any plan must move there
};

/// Ops of one kind at one line that synchronise.
struct SyncLine {
  std::string op, place, why;
  uint64_t count = 0;  ///< of all ranks
};

/// What a pass did to a line.
struct PassLine {
  std::string pass, place, did;
};

/// Another plan that the library has for the call.
struct ChoiceLine {
  std::string plan;
  double us = 0;
  bool picked = false;
};

struct Explanation {
  std::string name, description, collective, dtype;
  uint32_t ranks = 0, blocks = 0, threads = 0;
  uint64_t bytes = 0;
  uint64_t rows = 0;                    ///< of the message, of a collective of rows
  uint32_t columns = 0;                 ///< the same: of a row
  std::optional<uint64_t> asked_bytes;  ///< where these are no size of the plan's calls
  std::string machine;
  bool measured = false;
  /// Why the plan is not proved, the first reason; "" if it is. Nothing: it was not asked.
  std::optional<std::string> not_proved;
  /// Why nothing is launched, and so no time taken; "" if something is.
  std::string why_nothing;
  double us = 0;        ///< of a call, when calls follow one another
  double alone_us = 0;  ///< of a call before which nothing ran
  uint32_t hops = 0;    ///< messages on the longest way
  Bound bound;
  std::array<double, kCauses> causes_us{};  ///< of the call alone
  std::vector<PathLine> path;
  std::vector<TrafficLine> traffic;
  uint64_t scratch_bytes = 0;  ///< of the rank that has most
  std::vector<SyncLine> syncs;
  std::vector<PassLine> passes;
  std::string from_table;  ///< parameters of a program of rows, "B=8,T=768"; "": all are given
  std::string why_picked;  ///< "" if the library was not asked
  std::vector<ChoiceLine> choices;

  Cause limit() const;  ///< what most of the path is spent on
};

/// Explains a call. `asked_bytes`: the message that call_of() was asked for. Errors: those of
/// Model::predict().
[[nodiscard]] std::optional<Explanation> explain(
    const Program& program, const Call& call, const Machine& machine, Diagnostics& diagnostics,
    std::optional<uint64_t> asked_bytes = std::nullopt);

/// "1.50 MiB", "64 KiB", "7 bytes"
std::string size_text(uint64_t bytes);
/// The same, but in bytes where the former would round.
std::string exact_size_text(uint64_t bytes);

/// "nothing is launched: the plan has no ops"; "" if something is.
std::string nothing_text(const Explanation& e);
/// A line that says so; "" if the plan is proved, or was not asked about.
std::string not_proved_text(const Explanation& e);
/// A line with the parameters that the table of rows gave; "" if it gave none.
std::string from_table_text(const Explanation& e);
std::string explanation_text(const Explanation& e);
/// One JSON object, with a line break at its end; docs/cost_model.md has its keys.
std::string explanation_json(const Explanation& e);

}  // namespace mscclc::cost
