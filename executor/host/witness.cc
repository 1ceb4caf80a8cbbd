#include "executor/host/witness.h"

#include <algorithm>
#include <chrono>

#include "ir/contract.h"

namespace mscclc {
namespace {

/// What is run, apart from holds: a size, and whether buffers coincide.
struct Setting {
  uint64_t bytes;
  bool in_place;
};

class Search {
 public:
  Search(const Program& program, const WitnessSearch& search)
      : program_(program), search_(search), runner_(program), start_(Clock::now()) {}

  std::optional<Witness> find(std::span<const Suspect> suspects) {
    suspects = suspects.first(std::min(suspects.size(), search_.suspects));
    spec_.iterations = search_.calls;
    for (const Suspect& s : suspects) {
      for (const uint64_t call : {s.first.call, s.second ? s.second->call : 0}) {
        spec_.iterations = std::max(spec_.iterations, static_cast<uint32_t>(call + 2));
      }
    }
    if (!choose_settings()) return std::nullopt;
    if (!try_all({}) && !try_suspects(suspects) && !try_seeds()) return std::nullopt;
    minimise();
    return make();
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Holds = std::vector<Hold>;

  bool late() const {
    return std::chrono::duration<double>(Clock::now() - start_).count() > search_.seconds;
  }
  uint64_t message(uint64_t chunk_bytes) const;
  uint64_t round_bytes() const;
  bool choose_settings();
  bool choose_type();
  void list_settings();
  RunStatus run(const RunSpec& spec);
  bool fails(const RunSpec& spec);
  bool try_holds(const Setting& setting, const Holds& holds);
  bool try_all(const Holds& holds);
  bool try_suspects(std::span<const Suspect> suspects);
  bool try_seeds();
  void minimise();
  Witness make() const;

  const Program& program_;
  const WitnessSearch& search_;
  HostRunner runner_;
  const Clock::time_point start_;
  std::vector<Setting> settings_;
  RunSpec spec_;  ///< what is being tried; at the end, what has failed
  RunStatus status_ = RunStatus::right;
};

/// Bytes of a message whose chunks have so many.
uint64_t Search::message(uint64_t chunk_bytes) const {
  const Contract& contract = program_.contract;
  const uint64_t part = chunk_bytes * std::max(1u, contract.part_chunks());
  return Chunking(contract, part, program_.launch.align).message_bytes();
}

/// Of a chunk: so many that pipelines make several rounds, within reason.
uint64_t Search::round_bytes() const {
  uint64_t unit = 0;
  for (const Loop& loop : program_.loops) unit = std::max(unit, loop.unit);
  return std::min<uint64_t>(2 * unit, uint64_t{1} << 18);
}

void Search::list_settings() {
  const Contract& contract = program_.contract;
  const uint64_t align = program_.launch.align;
  // Six granules: every lane has some, whatever the number of lanes. Unequal chunks; one element.
  std::vector<uint64_t> sizes = {message(6 * align), message(7 * align) + 4, 4,
                                 message(18 * align)};
  if (contract.even_only) sizes = {message(6 * align), message(18 * align)};
  if (round_bytes() > 0) sizes.insert(sizes.begin(), message(round_bytes() + 6 * align));
  for (const uint64_t bytes : sizes) {
    if (contract.in_place != InPlace::yes) settings_.push_back({bytes, false});
    if (contract.in_place != InPlace::no && contract.can_alias())
      settings_.push_back({bytes, true});
  }
}

/// The first type and reduction that the plan can do at all.
bool Search::choose_type() {
  for (const Dtype dtype : {Dtype::f32, Dtype::i32, Dtype::f16, Dtype::u8}) {
    for (const ReduceOp op :
         {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::prod, ReduceOp::avg}) {
      spec_.dtype = dtype;
      spec_.op = op;
      spec_.bytes = settings_.front().bytes;
      spec_.in_place = settings_.front().in_place;
      if (run(spec_) != RunStatus::refused) return true;
    }
  }
  return false;
}

bool Search::choose_settings() {
  list_settings();
  return !settings_.empty() && choose_type();
}

RunStatus Search::run(const RunSpec& spec) {
  Diagnostics diagnostics;
  runner_.restart();
  return runner_.run(spec, diagnostics).status;
}

bool Search::fails(const RunSpec& spec) {
  const RunStatus status = run(spec);
  if (status != RunStatus::wrong && status != RunStatus::hung) return false;
  status_ = status;
  return true;
}

bool Search::try_holds(const Setting& setting, const Holds& holds) {
  spec_.bytes = setting.bytes;
  spec_.in_place = setting.in_place;
  for (const uint32_t lanes : {2u, 3u}) {
    spec_.adversary = Adversary{.lanes = lanes, .holds = holds};
    if (fails(spec_)) return true;
  }
  return false;
}

bool Search::try_all(const Holds& holds) {
  return std::any_of(settings_.begin(), settings_.end(),
                     [&](const Setting& s) { return try_holds(s, holds); });
}

/// Ways to put one op off, the most telling first.
std::vector<Hold> ways(const Program& program, const Suspect::Place& place) {
  const Op& op = program.ranks[place.rank].ops[place.op];
  Hold hold{.what = Hold::What::op, .rank = place.rank, .op = place.op, .call = place.call};
  std::vector<Hold> all;
  if (info(op.kind).moves_data()) {
    hold.what = Hold::What::access;
    all.push_back(hold);
    hold.what = Hold::What::proxy;
    if ((info(op.kind).channels & kPort) != 0) all.push_back(hold);
  }
  hold.what = Hold::What::op;
  for (const uint32_t lane : {Hold::kAllLanes, 0u, 1u}) {
    hold.lane = lane;
    all.push_back(hold);
  }
  hold.lane = Hold::kAllLanes;
  hold.what = Hold::What::call;
  all.push_back(hold);
  return all;
}

bool Search::try_suspects(std::span<const Suspect> suspects) {
  std::vector<Holds> pairs, singles;
  for (const Suspect& s : suspects) {
    const std::vector<Hold> first = ways(program_, s.first);
    for (const Hold& a : first) singles.push_back({a});
    if (!s.second) continue;
    const std::vector<Hold> second = ways(program_, *s.second);
    for (const Hold& b : second) singles.push_back({b});
    for (const Hold& a : first) {
      for (const Hold& b : second) {
        pairs.push_back({a, b});
        pairs.push_back({b, a});
      }
    }
  }
  for (const std::vector<Holds>* list : {&singles, &pairs}) {
    for (const Setting& setting : settings_) {
      for (const Holds& holds : *list) {
        if (late()) return false;
        if (try_holds(setting, holds)) return true;
      }
    }
  }
  return false;
}

bool Search::try_seeds() {
  for (uint32_t i = 0; i < search_.seeds && !late(); ++i) {
    const Setting& setting = settings_[i % settings_.size()];
    spec_.schedule_seed = i + 1;
    if (try_holds(setting, {})) return true;
  }
  return false;
}

/// Leaves out what is not needed: holds, calls, lanes.
void Search::minimise() {
  const auto keep = [&](const RunSpec& smaller) {
    if (!fails(smaller)) return false;
    spec_ = smaller;
    return true;
  };
  for (size_t i = spec_.adversary->holds.size(); i-- > 0;) {
    RunSpec smaller = spec_;
    smaller.adversary->holds.erase(smaller.adversary->holds.begin() + static_cast<ptrdiff_t>(i));
    keep(smaller);
  }
  uint32_t needed = 1;
  for (const Hold& hold : spec_.adversary->holds) {
    needed = std::max(needed, static_cast<uint32_t>(hold.call + 1));
  }
  for (uint32_t calls = needed; calls < spec_.iterations; ++calls) {
    RunSpec smaller = spec_;
    smaller.iterations = calls;
    if (keep(smaller)) break;
  }
  RunSpec smaller = spec_;
  smaller.adversary->lanes = 1;
  const auto of_one_lane = [](const Hold& h) { return h.lane != Hold::kAllLanes && h.lane > 0; };
  const Holds& holds = smaller.adversary->holds;
  if (std::none_of(holds.begin(), holds.end(), of_one_lane)) keep(smaller);
  fails(spec_);  // its own status, not that of what was left out last
}

Witness Search::make() const {
  Witness witness{{plan_hash(program_), spec_}, status_};
  for (Hold& hold : witness.schedule.spec.adversary->holds) {
    if (hold.what == Hold::What::call) hold.op = 0;
    hold.note = describe(program_, hold);
  }
  return witness;
}

}  // namespace

std::optional<Witness> find_witness(const Program& program, std::span<const Suspect> suspects,
                                    const WitnessSearch& search) {
  return Search(program, search).find(suspects);
}

}  // namespace mscclc
