#include "runtime/core/collectives/where_ranks_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/support/bytes.h"

namespace mscclc {
namespace {

/// What one rank says of its device, and of its settings.
struct DeviceOfRank {
  uint32_t architecture = 0, multiprocessors = 0;
  uint8_t order = 0;  ///< a SumOrder
  uint8_t multicast = 0;
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

std::vector<uint8_t> introduce(const Device& device, SumOrder order) {
  std::vector<uint8_t> message;
  ByteWriter(message)
      .number(number_of(device.architecture()))
      .number(device.multiprocessors())
      .number(static_cast<uint8_t>(order))
      .number(static_cast<uint8_t>(device.may_multicast()));
  return message;
}

bool read_devices(const std::vector<std::vector<uint8_t>>& messages,
                  std::vector<DeviceOfRank>& devices, Diagnostics& diagnostics) {
  for (const std::vector<uint8_t>& message : messages) {
    ByteReader reader(message);
    DeviceOfRank device;
    device.architecture = reader.number<uint32_t>();
    device.multiprocessors = reader.number<uint32_t>();
    device.order = reader.number<uint8_t>();
    device.multicast = reader.number<uint8_t>();
    if (!reader.ended() || device.order > static_cast<uint8_t>(SumOrder::exact)) {
      diagnostics.error("bad-message", {}, "a peer's message is cut off");
      return false;
    }
    devices.push_back(device);
  }
  return true;
}

/// Ranks that would pick different plans for the same call.
bool same_order(const std::vector<DeviceOfRank>& devices, Diagnostics& diagnostics) {
  const auto other = std::ranges::find_if(
      devices, [&](const DeviceOfRank& d) { return d.order != devices[0].order; });
  if (other == devices.end()) return true;
  const auto word = [](const DeviceOfRank& d) { return name(static_cast<SumOrder>(d.order)); };
  diagnostics
      .error("options-differ", {},
             fmt::format("sums of rank 0 keep to '{}', and those of rank {} to '{}'",
                         word(devices[0]), other - devices.begin(), word(*other)))
      .notes.push_back({"MSCCLC_ORDER, or the communicator's own option, must be the same on all "
                        "ranks"});
  return false;
}

/// How many nodes there are, if each has as many ranks, in one run; else 0.
uint32_t count_nodes(const std::vector<uint32_t>& first_of_node) {
  const auto ranks = static_cast<uint32_t>(first_of_node.size());
  const auto each = static_cast<uint32_t>(std::ranges::count(first_of_node, 0u));
  if (ranks % each != 0) return 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    if (first_of_node[r] != r / each * each) return 0;
  }
  return ranks / each;
}

}  // namespace

std::string nodes_text(const std::vector<uint32_t>& first_of_node) {
  constexpr size_t kMax = 200;
  const auto ranks = static_cast<uint32_t>(first_of_node.size());
  std::string text;
  for (uint32_t first = 0; first < ranks && text.size() < kMax; ++first) {
    if (first_of_node[first] != first) continue;
    text += text.empty() ? "" : " | ";
    text += std::to_string(first);
    for (uint32_t r = first + 1, run = first; r < ranks; ++r) {
      if (first_of_node[r] != first) continue;
      const bool goes_on =
          r + 1 < ranks && first_of_node[r + 1] == first && first_of_node[r - 1] == first;
      if (!goes_on)
        text +=
            fmt::format("{}{}", r - run > 1 && first_of_node[r - 1] == first ? " to " : ", ", r);
      if (!goes_on) run = r;
    }
  }
  return text.size() < kMax ? text : text.substr(0, kMax) + " …";
}

std::optional<WhereRanksRun> find_where_ranks_run(Communicator& communicator, SumOrder order,
                                                  Diagnostics& diagnostics) {
  std::vector<std::vector<uint8_t>> messages;
  std::vector<DeviceOfRank> devices;
  if (!communicator.bootstrap().all_gather(introduce(communicator.device(), order),
                                           "find the devices", messages, diagnostics) ||
      !read_devices(messages, devices, diagnostics) || !same_order(devices, diagnostics)) {
    return std::nullopt;
  }
  WhereRanksRun where{count_nodes(communicator.nodes()), devices[0].architecture,
                      devices[0].multiprocessors, devices.size() > 1};
  for (const DeviceOfRank& device : devices) {
    if (device.architecture != where.architecture) where.architecture = 0;
    where.multiprocessors = std::min(where.multiprocessors, device.multiprocessors);
    where.multicast = where.multicast && device.multicast != 0;
  }
  return where;
}

}  // namespace mscclc
