#include "runtime/device/slots.h"

#include <algorithm>

namespace mscclc {
namespace {

constexpr uint64_t kSlab = 256 << 10;
constexpr uint64_t kLine = 128;

std::string_view text_of(std::span<const uint8_t> content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

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

void SlotPool::give(const Entry& slot) {
  const std::lock_guard lock(mutex_);
  if (slot.captured) return;
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

SlotPool::Slot SlotPool::owned(const Entry& slot) {
  return {new Entry(slot), [pool = shared_from_this()](Entry* given) {
            pool->give(*given);
            delete given;
          }};
}

SlotPool::Slot SlotPool::take(std::span<const uint8_t> content, Diagnostics& diagnostics) {
  uint8_t* data = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!captured_.empty()) {
      const auto same = captured_.find(text_of(content));
      if (same != captured_.end()) return owned({.data = same->second, .captured = true});
    }
    data = take_free(diagnostics);
  }
  if (data == nullptr) return nullptr;
  Slot slot = owned({.data = data});
  return device_->write(data, content.data(), content.size(), diagnostics) ? slot : nullptr;
}

// A mark that cannot be made costs memory: slots wait for the next one. Marks are few however many
// launches are under way: once the most are kept, the newest moves on to this launch.
void SlotPool::launched(Entry& slot, std::span<const uint8_t> content, StreamHandle stream) {
  const bool captured = device_->is_capturing(stream);
  const std::lock_guard lock(mutex_);
  slot.launch = ++launches_;
  if (captured && !slot.captured) {
    slot.captured = true;
    captured_.try_emplace(std::string(text_of(content)), slot.data);
  }
  if (captured || launches_ % kMarkEvery != 0) return;
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
