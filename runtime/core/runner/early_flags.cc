#include "runtime/core/runner/early_flags.h"

#include <fmt/format.h>

#include <cstring>

namespace mscclc {

std::optional<EarlyFlags> EarlyFlags::make(const Program& plan, Device& device,
                                           Diagnostics& diagnostics) {
  std::optional<EarlyFlags> made(std::in_place);
  made->device_ = &device;
  for (const FlagArray& array : plan.flags) {
    const uint64_t bytes = uint64_t{array.count} * (array.bits / 8);
    auto words = device.allocate(bytes, "flags", diagnostics);
    if (words == nullptr) return std::nullopt;
    made->given_.push_back(
        {.name = array.name, .words = words->data(), .count = array.count, .bits = array.bits});
    made->arrays_.push_back({&array, std::move(words)});
  }
  return made;
}

/// The words of an array whose flags have been raised in all calls.
std::vector<uint8_t> EarlyFlags::complete(const FlagArray& array) const {
  const uint64_t raised = calls_ * array.raises;
  const uint32_t width = array.bits / 8;
  std::vector<uint8_t> words(uint64_t{array.count} * width);
  for (uint32_t c = 0; c < array.count; ++c) std::memcpy(&words[c * width], &raised, width);
  return words;
}

bool EarlyFlags::raise(Diagnostics& diagnostics) {
  ++calls_;
  for (const Array& array : arrays_) {
    if (array.declared->of_output) continue;
    const std::vector<uint8_t> words = complete(*array.declared);
    if (!device_->write(array.words->data(), words.data(), words.size(), diagnostics)) return false;
  }
  return true;
}

bool EarlyFlags::compare(Diagnostics& diagnostics) {
  for (const Array& array : arrays_) {
    const std::vector<uint8_t> wanted = complete(*array.declared);
    std::vector<uint8_t> words(wanted.size());
    if (!device_->read(words.data(), array.words->data(), words.size(), diagnostics)) return false;
    if (words == wanted) continue;
    diagnostics.error("wrong-data", {},
                      fmt::format("the flags '{}' were not all raised {} times in each of {} calls",
                                  array.declared->name, array.declared->raises, calls_));
    return false;
  }
  return true;
}

}  // namespace mscclc
