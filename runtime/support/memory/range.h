// A piece of an allocation: what its owner lets others map, and what a handle asks for.
#pragma once

#include <cstdint>
#include <string>

namespace mscclc {

struct MemoryRange {
  uint64_t offset = 0, bytes = 0;  ///< from the allocation's begin

  bool holds(const MemoryRange& other) const {
    return other.offset >= offset && other.offset - offset <= bytes &&
           other.bytes <= bytes - (other.offset - offset);
  }
  /// Why a handle that asks for `other` is not served.
  std::string refusal(const MemoryRange& other) const {
    return "its owner lets others map " + text() + " of it, the handle is for " + other.text();
  }

 private:
  std::string text() const { return std::to_string(bytes) + " bytes at " + std::to_string(offset); }
};

}  // namespace mscclc
