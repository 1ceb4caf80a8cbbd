// Wire form, numbers little endian:
//   u32 version   u64 bytes   u64 offset   u64 allocation   u8 offers
//   for each offer: u8 kind   u16 length   bytes
#include "runtime/support/memory/handle.h"

#include <fmt/format.h>

#include <iterator>

#include "ir/support/precondition.h"
#include "ir/support/result.h"
#include "runtime/support/bytes.h"

namespace mscclc {
namespace {

constexpr uint32_t kVersion = 1;

std::optional<MemoryHandle> bad(Diagnostics& diagnostics, const std::string& why) {
  diagnostics.error("bad-handle", {}, "a peer's memory handle is damaged: " + why);
  return std::nullopt;
}

/// Reads one offer.
Result<void> read_offer(ByteReader& reader, MemoryHandle& handle) {
  const auto kind = reader.number<uint8_t>();
  const auto length = reader.number<uint16_t>();
  if (!reader.good()) return Error{"an offer is cut off"};
  if (kind > static_cast<uint8_t>(HandleKind::host_lane)) {
    return Error{fmt::format("it offers kind {}, which is not known here", kind)};
  }
  if (length > Offer::kMaxBytes) {
    return Error{
        fmt::format("an offer has {} bytes, at most {} are allowed", length, Offer::kMaxBytes)};
  }
  const std::span<const uint8_t> bytes = reader.bytes(length);
  if (!reader.good()) return Error{"an offer is cut off"};
  handle.offers.push_back({static_cast<HandleKind>(kind), {bytes.begin(), bytes.end()}});
  return {};
}

}  // namespace

std::string_view name(HandleKind kind) {
  static constexpr std::string_view kNames[] = {
      // in the order of the kinds
      "same_process", "host_fd", "cuda_fd", "cuda_fabric", "cuda_ipc", "host_lane"};
  static_assert(std::size(kNames) == static_cast<size_t>(HandleKind::host_lane) + 1);
  const auto at = static_cast<size_t>(kind);
  return at < std::size(kNames) ? kNames[at] : "?";
}

void encode(const MemoryHandle& handle, std::vector<uint8_t>& to) {
  precondition(handle.offers.size() <= MemoryHandle::kMaxOffers);
  ByteWriter writer(to);
  writer.number(kVersion).number(handle.bytes).number(handle.offset).number(handle.allocation);
  writer.number(static_cast<uint8_t>(handle.offers.size()));
  for (const Offer& offer : handle.offers) {
    writer.number(static_cast<uint8_t>(offer.kind));
    writer.number(static_cast<uint16_t>(offer.bytes.size())).bytes(offer.bytes);
  }
}

std::optional<MemoryHandle> decode_handle(std::span<const uint8_t>& from,
                                          Diagnostics& diagnostics) {
  ByteReader reader(from);
  const auto version = reader.number<uint32_t>();
  if (reader.good() && version != kVersion) {
    return bad(diagnostics, fmt::format("it has version {}, this is {}", version, kVersion));
  }
  MemoryHandle handle;
  handle.bytes = reader.number<uint64_t>();
  handle.offset = reader.number<uint64_t>();
  handle.allocation = reader.number<uint64_t>();
  const auto offers = reader.number<uint8_t>();
  if (!reader.good()) return bad(diagnostics, "its head is cut off");
  if (handle.offset > handle.allocation || handle.bytes > handle.allocation - handle.offset) {
    return bad(diagnostics, fmt::format("{} bytes at {} lie outside an allocation of {}",
                                        handle.bytes, handle.offset, handle.allocation));
  }
  if (offers > MemoryHandle::kMaxOffers) {
    return bad(diagnostics, fmt::format("it has {} offers, at most {} are allowed", offers,
                                        MemoryHandle::kMaxOffers));
  }
  for (uint8_t i = 0; i < offers; ++i) {
    const auto read = read_offer(reader, handle);
    if (!read) return bad(diagnostics, read.error().text());
  }
  from = reader.rest();
  return handle;
}

}  // namespace mscclc
