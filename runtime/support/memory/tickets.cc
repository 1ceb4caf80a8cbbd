#include "runtime/support/memory/tickets.h"

#include <unistd.h>

#include <map>
#include <mutex>

#include "runtime/support/fd.h"
#include "runtime/support/process/per_process.h"

namespace mscclc {
namespace {

constexpr size_t kSecretBytes = 16;

struct Offers {
  std::mutex mutex;
  std::map<std::vector<uint8_t>, OfferedMemory> by_ticket;
};

}  // namespace

std::string process_identity() {
  // Random, so that processes of other machines and containers differ; the id, so that a child
  // does.
  static const std::string random = [] {
    uint8_t bytes[16];
    fill_random(bytes);
    return std::string(reinterpret_cast<const char*>(bytes), sizeof bytes);
  }();
  const auto id = static_cast<uint64_t>(getpid());
  return random + std::string(reinterpret_cast<const char*>(&id), sizeof id);
}

std::vector<uint8_t> offer_ticket(const OfferedMemory& memory) {
  const std::string identity = process_identity();
  std::vector<uint8_t> ticket(identity.begin(), identity.end());
  ticket.resize(identity.size() + kSecretBytes);
  fill_random(std::span(ticket).last(kSecretBytes));
  auto& offers = process_wide<Offers>();
  const std::lock_guard lock(offers.mutex);
  offers.by_ticket.emplace(ticket, memory);
  return ticket;
}

void withdraw_ticket(std::span<const uint8_t> ticket) {
  auto& offers = process_wide<Offers>();
  const std::lock_guard lock(offers.mutex);
  offers.by_ticket.erase({ticket.begin(), ticket.end()});
}

Result<OfferedMemory> find_ticket(std::span<const uint8_t> ticket, const MemoryRange& wanted) {
  const std::string identity = process_identity();
  const std::string_view text(reinterpret_cast<const char*>(ticket.data()), ticket.size());
  if (ticket.size() != identity.size() + kSecretBytes || !text.starts_with(identity)) {
    return Error{"it is memory of another process"};
  }
  auto& offers = process_wide<Offers>();
  const std::lock_guard lock(offers.mutex);
  const auto found = offers.by_ticket.find({ticket.begin(), ticket.end()});
  if (found == offers.by_ticket.end()) {
    return Error{"this process does not offer it (any more)"};
  }
  if (!found->second.range.holds(wanted)) {
    return Error{found->second.range.refusal(wanted)};
  }
  return found->second;
}

}  // namespace mscclc
