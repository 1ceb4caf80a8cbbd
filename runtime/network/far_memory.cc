#include "runtime/network/far_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "runtime/support/bytes.h"
#include "runtime/support/fd.h"

namespace mscclc {

void encode(const FarPiece& piece, std::vector<uint8_t>& to) {
  ByteWriter writer(to);
  writer.number(piece.id).number(static_cast<uint8_t>(piece.device_key.has_value()));
  if (const auto& key = piece.device_key) {
    writer.number(key->address).number(key->key).number(static_cast<uint8_t>(key->staged));
  }
  writer.number(static_cast<uint8_t>(piece.place)).text(piece.node);
}

std::optional<FarPiece> decode_far_piece(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  FarPiece piece;
  piece.id = reader.number<ExposedId>();
  if (reader.number<uint8_t>() != 0) {
    const auto address = reader.number<uint64_t>();
    const auto key = reader.number<uint32_t>();
    piece.device_key = {address, key, reader.number<uint8_t>() != 0};
  }
  const auto place = reader.number<uint8_t>();
  piece.place = static_cast<MemoryPlace>(place);
  piece.node = reader.text(reader.rest().size());
  if (!reader.good() || place > static_cast<uint8_t>(MemoryPlace::device)) return std::nullopt;
  return piece;
}

std::unique_ptr<FarWindow> FarWindow::reserve(uint64_t bytes, const FarPiece& piece,
                                              Diagnostics& diagnostics) {
  void* const at = ::mmap(nullptr, std::max<uint64_t>(bytes, 1), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at != MAP_FAILED) {
    return std::unique_ptr<FarWindow>(new FarWindow(static_cast<uint8_t*>(at), bytes, piece));
  }
  diagnostics.error("out-of-memory", {},
                    fmt::format("cannot reserve {} bytes of addresses for a peer's memory: {}",
                                bytes, error_text(errno)));
  return nullptr;
}

FarWindow::FarWindow(uint8_t* data, uint64_t bytes, const FarPiece& piece)
    : NamedMemory(piece.id, piece.device_key, piece.place) {
  data_ = data;
  bytes_ = bytes;
}

FarWindow::~FarWindow() { ::munmap(data_, std::max<uint64_t>(bytes_, 1)); }

}  // namespace mscclc
