// Sends and receives of a group, by plans: those of different peers and directions go on at the
// same time, each on the stream of its route, between two points at which the caller's streams
// wait.
#pragma once

#include <thread>
#include <vector>

#include "runtime/doors/nccl/calls/comm_calls.h"

namespace mscclc::nccl {

/// True if plans may serve its communicator's messages.
bool serves_messages(const Comm& comm);

/// Turns what this rank sends to itself into copies, and takes messages without elements away.
/// REQUIRES, as everything here: the communicator's mutex is held.
[[nodiscard]] ncclResult_t settle_own_messages(CallsOfComm& one);

/// True if preparing the communicator's messages waits for peers.
bool messages_may_wait(CallsOfComm& one);

/// The messages of one route, in order.
struct RouteCalls {
  uint32_t from = 0, to = 0;
  std::vector<Prepared*> calls;
  bool capturing = false;
  ncclResult_t result = ncclSuccess;
};

/// Prepares the messages of a communicator, which must not move until finish(): on threads where
/// that waits for peers, as the peers may wait for one another in any order.
class MessagePreparation {
 public:
  explicit MessagePreparation(CallsOfComm& one);
  ~MessagePreparation();
  MessagePreparation(const MessagePreparation&) = delete;
  MessagePreparation& operator=(const MessagePreparation&) = delete;
  [[nodiscard]] ncclResult_t finish();

 private:
  void join();

  CallsOfComm& own_;
  std::vector<RouteCalls> routes_;
  std::vector<std::thread> threads_;
};

/// Brings, among messages that follow one another, those that must not wait for others to the
/// front: copies, then plans', in one order on all ranks, then the real NCCL's.
void sort_messages(CallsOfComm& one);

/// Launches a message that has a route.
[[nodiscard]] ncclResult_t launch_message(CallsOfComm& one, const Prepared& message);
/// What comes after it on the caller's streams waits for the messages that are under way.
[[nodiscard]] ncclResult_t join_messages(CallsOfComm& one);

}  // namespace mscclc::nccl
