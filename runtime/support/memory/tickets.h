// Memory that threads of one process share: what travels is a ticket, never an address, so a
// message can name nothing that this process has not offered.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "runtime/support/memory/range.h"

namespace mscclc {

/// What a ticket stands for.
struct OfferedMemory {
  uint64_t base = 0;   ///< address of the allocation
  MemoryRange range;   ///< what may be used of it
  int32_t device = 0;  ///< where it lies, in the words of the device that offers it
  uint8_t kind = 0;    ///< the same
};

/// Makes memory known to this process until withdraw_ticket(): random bytes that cannot be guessed.
std::vector<uint8_t> offer_ticket(const OfferedMemory& memory);
void withdraw_ticket(std::span<const uint8_t> ticket);
/// Fails where this process has not offered that, or not all of `wanted`.
Result<OfferedMemory> find_ticket(std::span<const uint8_t> ticket, const MemoryRange& wanted);

/// Distinguishes this process from every other, of any machine and time: 24 bytes. A forked child
/// has another one.
std::string process_identity();

/// A ticket that is withdrawn with its last owner.
class KeptTicket {
 public:
  KeptTicket() = default;
  explicit KeptTicket(const OfferedMemory& memory) : bytes_(offer_ticket(memory)) {}
  ~KeptTicket() { withdraw_ticket(bytes_); }
  KeptTicket(const KeptTicket&) = delete;
  KeptTicket& operator=(const KeptTicket&) = delete;
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace mscclc
