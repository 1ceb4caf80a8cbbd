#include "runtime/core/communicator/call/place_flags.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc {
namespace {

using Places = std::vector<BlockPrograms::Places::Flags>;

/// "the call needs 16 words of 32 bits"
std::string wanted(const FlagArray& array) {
  return fmt::format(": the call needs {} words of {} bits", array.count, array.bits);
}

/// One call's flags.
class FlagPlacing {
 public:
  FlagPlacing(const FlagsOfCall& call, std::span<const CallFlags> given, Diagnostics& diagnostics)
      : call_(call), given_(given), diagnostics_(diagnostics), found_(declared().size()) {}

  bool run(Places& places) {
    if (!find() || !apart()) return false;
    if (!call_.moves_data) {
      return refuse(declared()[0],
                    "would be raised in a call that moves nothing, which no device counts: leave "
                    "out both the call and the other side");
    }
    return places.empty() ? place(places) : are_the_same(places);
  }

 private:
  const std::vector<FlagArray>& declared() const { return call_.plan.flags; }
  bool refuse(const FlagArray& array, const std::string& why) {
    diagnostics_.error("bad-external", {},
                       fmt::format("rank {}: the flags '{}' {}", call_.rank, array.name, why));
    return false;
  }

  /// Those that are given, and whether each is as declared.
  bool find() {
    for (const CallFlags& given : given_) {
      const auto at = std::ranges::find(declared(), given.name, &FlagArray::name);
      if (at == declared().end()) {
        return refuse_undeclared(call_.rank, call_.plan.name, "flags", given.name, declared(),
                                 diagnostics_);
      }
      const CallFlags*& found = found_[static_cast<size_t>(at - declared().begin())];
      if (found != nullptr) return refuse(*at, "are given twice");
      found = &given;
      if (!fits(*at, given)) return false;
    }
    for (size_t a = 0; a < found_.size(); ++a) {
      if (found_[a] == nullptr) return refuse(declared()[a], "are missing" + wanted(declared()[a]));
    }
    return true;
  }

  bool fits(const FlagArray& array, const CallFlags& given) {
    if (given.words == nullptr) return refuse(array, "have no memory" + wanted(array));
    if (given.bits != array.bits) {
      return refuse(array, fmt::format("have words of {} bits", given.bits) + wanted(array));
    }
    if (given.count < array.count) {
      return refuse(array, fmt::format("have {} words", given.count) + wanted(array));
    }
    if (reinterpret_cast<uintptr_t>(given.words) % (array.bits / 8) == 0) return true;
    return refuse(array,
                  fmt::format("begin at {}, no multiple of {} bytes: they must, as words are read "
                              "and raised whole",
                              fmt::ptr(given.words), array.bits / 8));
  }

  CallMemory memory_of(size_t a) const {
    return {"flags '" + declared()[a].name + "'", found_[a]->words,
            uint64_t{declared()[a].count} * (declared()[a].bits / 8)};
  }
  /// They share no byte with anything else of the call: both sides write them.
  bool apart() {
    std::vector<CallMemory> all(call_.others.begin(), call_.others.end());
    for (size_t a = 0; a < found_.size(); ++a) {
      const CallMemory own = memory_of(a);
      for (const CallMemory& other : all) {
        if (own.overlaps(other)) return refuse(declared()[a], "overlap the " + other.name);
      }
      all.push_back(own);
    }
    return true;
  }

  bool place(Places& places) const {
    uint32_t first = 0;
    for (size_t a = 0; a < found_.size(); ++a) {
      const FlagArray& array = declared()[a];
      places.push_back({.words = static_cast<uint8_t*>(found_[a]->words),
                        .first = first,
                        .raises = array.raises,
                        .bytes = static_cast<uint8_t>(array.bits / 8),
                        .of_system = array.scope == FlagScope::system});
      first += array.count;
    }
    return true;
  }

  /// Words count all calls, so another array would not have what the first one has.
  bool are_the_same(const Places& places) {
    for (size_t a = 0; a < found_.size(); ++a) {
      if (found_[a]->words == places[a].words) continue;
      return refuse(declared()[a],
                    fmt::format("begin at {}, and at {} in the plan's first call: words count all "
                                "calls, so give the same array in each, or load the plan again",
                                fmt::ptr(found_[a]->words), fmt::ptr(places[a].words)));
    }
    return true;
  }

  const FlagsOfCall& call_;
  const std::span<const CallFlags> given_;
  Diagnostics& diagnostics_;
  std::vector<const CallFlags*> found_;  ///< by array of the plan
};

}  // namespace

bool place_flags(const FlagsOfCall& call, std::span<const CallFlags> flags, Places& places,
                 Diagnostics& diagnostics) {
  if (call.plan.flags.empty() && flags.empty()) return true;
  return FlagPlacing(call, flags, diagnostics).run(places);
}

namespace {

/// What check_room() reports, if anything.
std::optional<Error> lack_of_room(const Program& plan, uint32_t rank, const FlagRoom& room) {
  const uint32_t blocks = plan.ranks[rank].blocks;
  if (plan.flags.empty() || room.multiprocessors == 0 || blocks == 0) return {};
  const auto is_of_output = [](const FlagArray& array) { return array.of_output; };
  const bool awaited = !std::ranges::all_of(plan.flags, is_of_output);  // by the plan
  const bool raised = std::ranges::any_of(plan.flags, is_of_output);    // for the other side
  const std::string has = fmt::format(
      "'{}' has {} thread blocks at rank {}, which hold as many "
      "multiprocessors",
      plan.name, blocks, rank);
  if (awaited && blocks >= room.multiprocessors) {
    return Error{fmt::format("{} while they wait for flags; the device has {}, and the other side "
                             "needs some to raise them",
                             has, room.multiprocessors),
                 "compile it with fewer chunks or instances"};
  }
  if (room.budget != 0 && blocks > room.budget) {
    return Error{fmt::format("{}; the call's budget is {}", has, room.budget),
                 "leave the plan more of them, or compile it with fewer chunks or instances"};
  }
  if (!raised || room.order == LaunchOrder::plan_first || room.budget != 0) return {};
  return Error{
      fmt::format("{}; the other side, which may hold all {} before the plan begins, waits "
                  "for its flags",
                  has, room.multiprocessors),
      fmt::format("launch the plan first, and say so (launch_order: plan_first); or leave "
                  "multiprocessors free, and say how many (budget: {})",
                  blocks)};
}

}  // namespace

bool check_room(const Program& plan, uint32_t rank, const FlagRoom& room,
                Diagnostics& diagnostics) {
  const std::optional<Error> lack = lack_of_room(plan, rank, room);
  if (!lack) return true;
  diagnostics.error("flags-not-resident", {}, lack->message)
      .notes.push_back({.text = lack->remedy});
  return false;
}

bool refuse_staged(const Program& plan, const FlagArray& array, Diagnostics& diagnostics) {
  diagnostics
      .error("flags-staged", {},
             fmt::format("the flags '{}' of '{}' are of the {}, which calls copy {} their kernel",
                         array.name, plan.name, array.of_output ? "output" : "input",
                         array.of_output ? "after" : "before"))
      .notes.push_back(
          {.text = "load the plan for zero copy, and register the buffer on all ranks"});
  return false;
}

}  // namespace mscclc
