// The messages of a schedule, and an order in which its steps can be done.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "compiler/msccl/schedule.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc::msccl {

/// What goes from one GPU to another over one channel: the messages, in order.
struct Connection {
  uint32_t from = 0, to = 0, channel = 0;
  auto operator<=>(const Connection&) const = default;
};
struct Message {
  StepId sent, received;
  uint32_t first = 0;  ///< chunk of the room that all messages of the connection have
};

struct Order {
  std::map<Connection, std::vector<Message>> messages;
  std::vector<StepId> steps;  ///< all, each after what it waits for

  /// Chunks of all messages of a connection.
  uint32_t room(const Schedule& schedule, const Connection& connection) const;
};

/// nullopt: reported (messages that are not received, that differ in size; steps that wait for each
/// other).
std::optional<Order> find_order(const Schedule& schedule, Diagnostics& diagnostics);

}  // namespace mscclc::msccl
