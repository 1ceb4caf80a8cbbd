// A read by which a network device makes what it has written to a GPU visible there: on PCI a read
// does not overtake writes before it, so once it is answered, they are there.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/verbs/adapter.h"

namespace mscclc::verbs {

/// Thread safety: one thread at a time.
class FlushRead {
 public:
  /// nullptr: `why` says why.
  [[nodiscard]] static std::unique_ptr<FlushRead> make(const Adapter& adapter, std::string& why);
  /// Reads the byte at `address`, which is registered for remote reading, and waits for it. False:
  /// `why`.
  [[nodiscard]] bool run(uint64_t address, uint32_t key, std::string& why);

 private:
  explicit FlushRead(std::chrono::seconds patience) : patience_(patience) {}

  const std::chrono::seconds patience_;
  const std::unique_ptr<uint64_t> word_ = std::make_unique<uint64_t>();
  std::shared_ptr<const MemoryRegion> region_;  ///< of the word
  std::shared_ptr<CompletionQueue> done_;
  std::unique_ptr<QueuePair> pair_;  ///< both ends of its connection
};

}  // namespace mscclc::verbs
