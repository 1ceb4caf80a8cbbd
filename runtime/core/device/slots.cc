#include "runtime/core/device/slots.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace mscclc {
namespace {

constexpr uint64_t kSlab = 256 << 10;
constexpr uint64_t kLine = 128;

std::string_view text_of(std::span<const uint8_t> content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

}  // namespace

/// Slots of graphs that are gone, once for each launch that they had. Graphs hold this and not the
/// pool, whose memory must not be freed where they end. What they do there takes no lock and no
/// memory: the driver may wait for it while others wait for the driver.
class SlotPool::Gone {
 public:
  struct Launch {
    uint8_t* data;
    Launch* next = nullptr;
  };

  Gone() = default;
  Gone(const Gone&) = delete;
  Gone& operator=(const Gone&) = delete;
  ~Gone() {
    take_all([](uint8_t*) {});
  }

  void push(std::unique_ptr<Launch> launch) {
    Launch* const added = launch.release();
    added->next = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(added->next, added, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
  }
  /// Calls `take` with each.
  template <class Take>
  void take_all(Take take) {
    Launch* next = first_.exchange(nullptr, std::memory_order_acquire);
    while (next != nullptr) {
      const std::unique_ptr<Launch> launch(std::exchange(next, next->next));
      take(launch->data);
    }
  }

 private:
  std::atomic<Launch*> first_{nullptr};
};

SlotPool::SlotPool(std::shared_ptr<Device> device, uint64_t slot_bytes, Source source,
                   GraphsEnd graphs_end)
    : device_(std::move(device)),
      slot_bytes_((slot_bytes + kLine - 1) / kLine * kLine),
      source_(std::move(source)),
      gone_(graphs_end == GraphsEnd::known ? std::make_shared<Gone>() : nullptr) {}

bool SlotPool::grow(Diagnostics& diagnostics) {
  const uint64_t slots = std::max<uint64_t>(1, kSlab / slot_bytes_);
  auto slab = source_(slots * slot_bytes_, diagnostics);
  if (slab == nullptr) return false;
  for (uint64_t i = slots; i > 0; --i) free_.push_back(slab->data() + (i - 1) * slot_bytes_);
  slabs_.push_back(std::move(slab));
  return true;
}

// Frees what was given back and has ended by now.
void SlotPool::collect() {
  while (!marks_.empty() && marks_.front().mark->reached()) {
    ended_ = marks_.front().launch;
    spare_marks_.push_back(std::move(marks_.front().mark));
    marks_.pop_front();
  }
  std::erase_if(given_back_, [this](const UsedSlot& slot) {
    if (slot.launch > ended_) return false;
    free_.push_back(slot.data);
    return true;
  });
}

void SlotPool::collect_from_graphs() {
  if (gone_ == nullptr) return;
  gone_->take_all([this](uint8_t* data) {
    const auto captured = captured_.find(data);
    --captured->second.graphs;
    release_if_unused(captured);
  });
}

/// No graph and no owner has it any more: it holds what it is given next.
void SlotPool::release_if_unused(AllCaptured::iterator captured) {
  const auto& [data, of] = *captured;
  if (of.stays || of.graphs > 0 || of.owners > 0) return;
  const UsedSlot slot{.data = data, .launch = of.launch};
  const auto known = by_content_.find(of.content);
  if (known != by_content_.end() && known->second == data) by_content_.erase(known);
  captured_.erase(captured);
  give_back(slot);
}

/// The last owner of a Slot has gone.
void SlotPool::give(const UsedSlot& slot) {
  const std::lock_guard lock(mutex_);
  if (!slot.captured) return give_back(slot);
  const auto captured = captured_.find(slot.data);
  --captured->second.owners;
  captured->second.launch = std::max(captured->second.launch, slot.launch);
  collect_from_graphs();
  // Unless that has released it.
  if (const auto there = captured_.find(slot.data); there != captured_.end()) {
    release_if_unused(there);
  }
}

/// It is not launched any more.
void SlotPool::give_back(const UsedSlot& slot) {
  if (slot.launch <= ended_) {
    free_.push_back(slot.data);
  } else {
    given_back_.push_back(slot);
  }
}

uint8_t* SlotPool::take_free(Diagnostics& diagnostics) {
  if (free_.empty()) collect();
  if (free_.empty() && !grow(diagnostics)) return nullptr;
  uint8_t* const data = free_.back();
  free_.pop_back();
  return data;
}

SlotPool::Slot SlotPool::owned(const UsedSlot& slot) {
  return {new UsedSlot(slot), [pool = shared_from_this()](UsedSlot* given) {
            pool->give(*given);
            delete given;
          }};
}

SlotPool::Slot SlotPool::take(std::span<const uint8_t> content, Diagnostics& diagnostics) {
  uint8_t* data = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!captured_.empty()) {
      collect_from_graphs();
      const auto same = by_content_.find(text_of(content));
      if (same != by_content_.end()) {
        ++captured_.find(same->second)->second.owners;
        return owned({.data = same->second, .captured = true});
      }
    }
    data = take_free(diagnostics);
  }
  if (data == nullptr) return nullptr;
  Slot slot = owned({.data = data});
  return device_->write(data, content.data(), content.size(), diagnostics) ? slot : nullptr;
}

/// Counted before the graph has it: that may be gone at once.
void SlotPool::capture(UsedSlot& slot, std::span<const uint8_t> content, StreamHandle stream) {
  {
    const std::lock_guard lock(mutex_);
    Captured& captured = captured_[slot.data];
    ++captured.graphs;
    if (!slot.captured) {
      slot.captured = true;
      captured.owners = 1;
      captured.content = text_of(content);
      by_content_.try_emplace(captured.content, slot.data);
    }
    if (gone_ == nullptr || captured.stays) {
      captured.stays = true;
      return;
    }
  }
  const auto launch = std::make_shared<std::unique_ptr<Gone::Launch>>(
      std::make_unique<Gone::Launch>(Gone::Launch{slot.data}));
  const auto end = [gone = gone_, launch] { gone->push(std::move(*launch)); };
  if (device_->at_end_of_graph(stream, end)) return;
  const std::lock_guard lock(mutex_);
  captured_[slot.data].stays = true;
}

// A mark that cannot be made costs memory: slots wait for the next one. Marks are few however many
// launches are under way: once the most are kept, the newest moves on to this launch.
void SlotPool::launched(UsedSlot& slot, std::span<const uint8_t> content, StreamHandle stream) {
  if (device_->is_capturing(stream)) return capture(slot, content, stream);
  const std::lock_guard lock(mutex_);
  slot.launch = ++launches_;
  if (launches_ % kMarkEvery != 0) return;
  if (marks_.size() == kMaxMarks) collect();
  std::unique_ptr<StreamMark> mark;
  if (marks_.size() == kMaxMarks) {
    mark = std::move(marks_.back().mark);
    marks_.pop_back();
  } else if (!spare_marks_.empty()) {
    mark = std::move(spare_marks_.back());
    spare_marks_.pop_back();
  }
  Diagnostics problems;
  if (device_->mark(stream, mark, problems)) marks_.push_back({launches_, std::move(mark)});
}

}  // namespace mscclc
