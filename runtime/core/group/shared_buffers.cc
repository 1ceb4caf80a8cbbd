#include "runtime/core/group/shared_buffers.h"

#include <algorithm>
#include <iterator>

#include "ir/support/precondition.h"

namespace mscclc {

uint64_t SharedBuffers::add(std::shared_ptr<SharedBuffer> buffer,
                            const std::vector<std::vector<BufferOverlap>>& overlaps) {
  const uint64_t number = next_++;
  overlaps_.add(number, overlaps);
  all_[number] = std::move(buffer);
  return number;
}

std::shared_ptr<SharedBuffer> SharedBuffers::remove(uint64_t number) {
  precondition(all_.count(number) == 1);
  overlaps_.remove(number);
  return all_.extract(number).mapped();
}

SharedBuffer* SharedBuffers::find(uint64_t number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : found->second.get();
}

std::vector<BufferOverlap> SharedBuffers::overlaps_of(const SharedBuffer& buffer) const {
  std::vector<BufferOverlap> found;
  for (const auto& [number, other] : all_) {
    const auto overlap =
        find_overlap({buffer.address, buffer.bytes}, number, {other->address, other->bytes});
    if (overlap && other->held->is_there()) found.push_back(*overlap);
  }
  return found;
}

void SharedBuffers::append_joined(std::vector<uint8_t>& message) const {
  for (const auto& [number, members] : joined_) {
    message.push_back(static_cast<uint8_t>(all_.count(number)));
  }
}

bool SharedBuffers::forget_joined(std::vector<std::vector<uint8_t>>& messages) {
  const auto listed = static_cast<ptrdiff_t>(joined_.size());
  ptrdiff_t i = 0;
  const auto is_gone = [&](const std::vector<uint8_t>& message) { return message[i] == 0; };
  for (const auto& message : messages) {
    if (message.size() < joined_.size()) return false;
  }
  for (auto entry = joined_.begin(); entry != joined_.end(); ++i) {
    entry = std::all_of(messages.begin(), messages.end(), is_gone) ? joined_.erase(entry)
                                                                   : std::next(entry);
  }
  for (auto& message : messages) message.erase(message.begin(), message.begin() + listed);
  return true;
}

}  // namespace mscclc
