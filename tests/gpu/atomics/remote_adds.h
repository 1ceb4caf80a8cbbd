// Additions by a network device to words of memory (RDMA atomics): what each brings back, and what
// is there in the end. The memory may be a GPU's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/network/verbs/adapter.h"

namespace mscclc::testing {

/// Words of 8 bytes, zeros at first, to which network devices may add, and which they may write.
struct AddWords {
  static constexpr uint64_t kCount = 512;
  uint64_t address = 0;  ///< as holders of the key name it
  uint32_t key = 0;
  std::function<std::optional<uint64_t>(uint64_t index)> read;  ///< nullopt: it cannot be read
};

/// Adds `adds` times to one word, with carries, and as often by each of `pairs` queue pairs at once
/// to another; then tries what must be refused: a place between words, and one after them. "": all
/// was right; otherwise what was not.
std::string check_adds(const verbs::Adapter& adapter, const AddWords& words, uint64_t adds,
                       uint32_t pairs);

}  // namespace mscclc::testing
