#include "runtime/network/verbs/device_queues.h"

#include <algorithm>

#include "ir/support/precondition.h"

namespace mscclc::verbs {
namespace {

/// Orders that a queue pair holds. As many as records: a record is free when its message is done.
constexpr uint32_t kDepth = kRecords;

}  // namespace

Result<Meeting> DeviceQueues::make(const Adapter& adapter, SignalMode mode) {
  const Port& port = adapter.port();
  const uint32_t queues = adapter.options().queues;
  const uint32_t depth = std::min(kDepth, port.most_orders);
  auto region = MemoryRegion::make(adapter.domain(), old_values_.data(), old_values_.bytes(),
                                   IBV_ACCESS_LOCAL_WRITE);
  if (!region) return region.error();
  old_values_key_ = *std::move(region);
  auto events = CompletionQueue::make(port.context, queues * (depth + 1));
  if (!events) return events.error();
  events_ = *std::move(events);
  Meeting ours;
  ours.mode = mode;
  ours.path = path_end(port);
  for (uint32_t i = 0; i < queues; ++i) {
    auto pair = QueuePair::make(adapter.domain(), events_, {depth, 1, kInline});
    if (!pair) return pair.error();
    const auto prepared = prepare(**pair, port, adapter.options(), 0);
    if (!prepared) return prepared.error();
    ours.queues.push_back({(*pair)->number(), random_packet_number()});
    queues_.emplace_back(*std::move(pair), depth, old_values_.data(), old_values_key_->local_key());
  }
  own_ = ours.queues;
  return ours;
}

Result<void> DeviceQueues::connect(const Adapter& adapter, const Meeting& theirs) {
  precondition(!queues_.empty());
  if (theirs.queues.size() != queues_.size()) {
    return Error{"it has another number of queue pairs"};
  }
  if (auto differs = mismatch(path_end(adapter.port()), theirs.path)) return *std::move(differs);
  for (size_t i = 0; i < queues_.size(); ++i) {
    const auto connected = verbs::connect(queues_[i].pair(), adapter.port(), adapter.options(),
                                          own_[i].first, theirs.path, theirs.queues[i]);
    if (!connected) return connected;
  }
  return {};
}

SendQueue* DeviceQueues::find(uint32_t number) {
  const auto found = std::ranges::find_if(
      queues_, [number](SendQueue& each) { return each.pair().number() == number; });
  return found == queues_.end() ? nullptr : &*found;
}

}  // namespace mscclc::verbs
