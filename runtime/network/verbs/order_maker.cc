#include "runtime/network/verbs/order_maker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/support/precondition.h"

namespace mscclc::verbs {

void OrderMaker::open(size_t queues, const DeviceKey& records) {
  precondition(next_record_.empty());
  records_ = records;
  next_record_.resize(queues);
}

Work OrderMaker::put(const NamedMemory& memory, uint64_t at, uint64_t end) {
  precondition(at < end);
  queue_ = (*memory.exposed() + at / kBlock) % next_record_.size();
  const uint64_t bytes = std::min(end, (at / kBlock + 1) * kBlock) - at;
  return {.key = memory.device_key()->key,
          .bytes = static_cast<uint32_t>(bytes),
          .to = memory.device_key()->address + at};
}

Work OrderMaker::landing(const NamedMemory& memory, uint64_t at, uint64_t bytes) {
  return message(Work::What::landing, {*memory.exposed(), at, 0, bytes});
}

Work OrderMaker::signal(const NamedMemory& memory, uint64_t at, uint64_t value) {
  return mode_ == SignalMode::host ? add(memory, at, value)
                                   : message(Work::What::message, {*memory.exposed(), at, value});
}

Work OrderMaker::add(const NamedMemory& memory, uint64_t at, uint64_t value) {
  const uint64_t address = memory.device_key()->address + at;
  const uint64_t before = std::exchange(counts_[address], value);
  return {.what = Work::What::add,
          .key = memory.device_key()->key,
          .bytes = sizeof value,
          .to = address,
          .value = value - before};
}

Work OrderMaker::message(Work::What what, const Record& record) {
  const auto place = static_cast<uint32_t>(next_record_[queue_]++ % kRecords);
  ++messages_;
  Work work{.what = what,
            .carried = true,
            .key = records_.key,
            .bytes = sizeof record,
            .place = place,
            .to = records_.address + (queue_ * kRecords + place) * sizeof record};
  static_assert(sizeof record <= kInline);
  std::memcpy(work.data.data(), &record, sizeof record);
  return work;
}

}  // namespace mscclc::verbs
