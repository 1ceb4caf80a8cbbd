#include "runtime/collectives/where_ranks_run.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/base/bytes.h"
#include "runtime/base/machine.h"

namespace mscclc {
namespace {

/// What one rank says of itself.
struct MachineOfRank {
  std::vector<uint8_t> machine;
  uint32_t architecture = 0, multiprocessors = 0;
};

/// 90 of "sm_90"; 0 of anything else.
uint32_t number_of(std::string_view architecture) {
  constexpr std::string_view kPrefix = "sm_";
  if (!architecture.starts_with(kPrefix)) return 0;
  architecture.remove_prefix(kPrefix.size());
  uint32_t number = 0;
  const char* const end = architecture.data() + architecture.size();
  const auto read = std::from_chars(architecture.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? number : 0;
}

std::vector<uint8_t> introduce(const Device& device) {
  std::vector<uint8_t> message;
  ByteWriter(message)
      .number(number_of(device.architecture()))
      .number(device.multiprocessors())
      .bytes(this_machine());
  return message;
}

bool read_places(const std::vector<std::vector<uint8_t>>& messages,
                 std::vector<MachineOfRank>& places, Diagnostics& diagnostics) {
  for (const std::vector<uint8_t>& message : messages) {
    ByteReader reader(message);
    MachineOfRank place;
    place.architecture = reader.number<uint32_t>();
    place.multiprocessors = reader.number<uint32_t>();
    place.machine.assign(reader.rest().begin(), reader.rest().end());
    if (!reader.good()) {
      diagnostics.error("bad-message", {}, "a peer's message is cut off");
      return false;
    }
    places.push_back(std::move(place));
  }
  return true;
}

/// How many nodes there are, if each has as many ranks, in one run; else 0.
uint32_t count_nodes(const std::vector<MachineOfRank>& places) {
  const auto ranks = static_cast<uint32_t>(places.size());
  const auto same = [&](uint32_t a, uint32_t b) { return places[a].machine == places[b].machine; };
  uint32_t each = 1;
  while (each < ranks && same(each, 0)) ++each;
  if (ranks % each != 0) return 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    if (!same(r, r / each * each)) return 0;
    for (uint32_t earlier = 0; r % each == 0 && earlier < r; ++earlier) {
      if (same(earlier, r)) return 0;
    }
  }
  return ranks / each;
}

}  // namespace

std::optional<WhereRanksRun> find_where_ranks_run(Communicator& communicator,
                                                  Diagnostics& diagnostics) {
  std::vector<std::vector<uint8_t>> messages;
  std::vector<MachineOfRank> places;
  if (!communicator.bootstrap().all_gather(introduce(communicator.device()), "find the machines",
                                           messages, diagnostics) ||
      !read_places(messages, places, diagnostics)) {
    return std::nullopt;
  }
  WhereRanksRun where{count_nodes(places), places[0].architecture, places[0].multiprocessors};
  for (const MachineOfRank& place : places) {
    if (place.architecture != where.architecture) where.architecture = 0;
    where.multiprocessors = std::min(where.multiprocessors, place.multiprocessors);
  }
  return where;
}

}  // namespace mscclc
