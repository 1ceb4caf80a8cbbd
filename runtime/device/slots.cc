#include "runtime/device/slots.h"

#include <algorithm>
#include <utility>

namespace mscclc {
namespace {

constexpr uint64_t kSlab = 256 << 10;
constexpr uint64_t kLine = 128;

}  // namespace

SlotPool::SlotPool(std::shared_ptr<Device> device, uint64_t slot_bytes, Source source)
    : device_(std::move(device)),
      slot_bytes_((slot_bytes + kLine - 1) / kLine * kLine),
      source_(std::move(source)) {}

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
  collect_from_graphs();
  while (!marks_.empty() && marks_.front().mark->reached()) {
    ended_ = marks_.front().launch;
    spare_marks_.push_back(std::move(marks_.front().mark));
    marks_.pop_front();
  }
  std::erase_if(given_back_, [this](const Entry& slot) {
    if (slot.launch > ended_) return false;
    free_.push_back(slot.data);
    return true;
  });
}

void SlotPool::collect_from_graphs() {
  std::vector<uint8_t*> gone;
  {
    const std::lock_guard lock(gone_->mutex);
    gone.swap(gone_->slots);
  }
  for (uint8_t* const data : gone) {
    const auto found = in_graphs_.find(data);
    if (--found->second.graphs > 0) continue;
    const std::optional<Entry> given = found->second.given_back;
    in_graphs_.erase(found);
    if (given) give_back(*given);
  }
}

/// The last owner of a slot has gone.
void SlotPool::give(const Entry& slot) {
  const std::lock_guard lock(mutex_);
  if (slot.lost) return;
  collect_from_graphs();
  const auto found = in_graphs_.find(slot.data);
  if (found == in_graphs_.end()) {
    give_back(slot);
  } else {
    found->second.given_back = slot;
  }
}

/// Nobody launches it any more.
void SlotPool::give_back(const Entry& slot) {
  if (slot.launch <= ended_) {
    free_.push_back(slot.data);
  } else {
    given_back_.push_back(slot);
  }
}

SlotPool::Slot SlotPool::take(Diagnostics& diagnostics) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) collect();
  if (free_.empty() && !grow(diagnostics)) return nullptr;
  const Entry slot{free_.back()};
  free_.pop_back();
  return {new Entry(slot), [pool = shared_from_this()](Entry* given) {
            pool->give(*given);
            delete given;
          }};
}

/// Counted first: the graph may be gone at once.
void SlotPool::captured(Entry& slot, StreamHandle stream) {
  {
    const std::lock_guard lock(mutex_);
    ++in_graphs_[slot.data].graphs;
  }
  const auto end = [gone = gone_, data = slot.data] {
    const std::lock_guard lock(gone->mutex);
    gone->slots.push_back(data);
  };
  if (device_->at_end_of_graph(stream, end)) return;
  slot.lost = true;
  end();
}

// A mark that cannot be made costs memory: slots wait for the next one. Marks are few however many
// launches are under way: once the most are kept, the newest moves on to this launch.
void SlotPool::launched(Entry& slot, StreamHandle stream) {
  if (device_->is_capturing(stream)) return captured(slot, stream);
  const std::lock_guard lock(mutex_);
  slot.launch = ++launches_;
  if (launches_ % kMarkEvery != 0) return;
  if (marks_.size() == kMostMarks) collect();
  std::unique_ptr<StreamMark> mark;
  if (marks_.size() == kMostMarks) {
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
