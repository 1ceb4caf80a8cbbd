// The wire form of memory handles: what is written is read, and nothing else is.
#include "runtime/support/memory/handle.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

using Bytes = std::vector<uint8_t>;

MemoryHandle sample() {
  return {.bytes = 100,
          .offset = 28,
          .allocation = 4096,
          .offers = {{HandleKind::same_process, {1, 2, 3}},
                     {HandleKind::cuda_ipc, Bytes(Offer::kMaxBytes, 7)},
                     {HandleKind::host_fd, {}}}};
}

Bytes encoded(const MemoryHandle& handle) {
  Bytes out;
  encode(handle, out);
  return out;
}

/// The message of what is wrong; "" if nothing is.
std::string mistake(const Bytes& bytes) {
  Diagnostics diagnostics;
  std::span<const uint8_t> from(bytes);
  const auto handle = decode_handle(from, diagnostics);
  CHECK(handle.has_value() != diagnostics.has_errors());
  if (handle) return {};
  CHECK(diagnostics.all().front().code == "bad-handle");
  CHECK(from.size() == bytes.size());
  return diagnostics.all().front().message;
}

TEST_CASE("what is written is read, and what follows is left") {
  Bytes bytes = encoded(sample());
  encode({.bytes = 1, .offset = 0, .allocation = 1, .offers = {}}, bytes);
  bytes.push_back(9);
  std::span<const uint8_t> from(bytes);
  Diagnostics diagnostics;
  const auto first = decode_handle(from, diagnostics);
  REQUIRE(first);
  CHECK(encoded(*first) == encoded(sample()));
  CHECK(first->offset == 28);
  CHECK(first->offers[1].kind == HandleKind::cuda_ipc);
  CHECK(first->offers[1].bytes == Bytes(Offer::kMaxBytes, 7));
  const auto second = decode_handle(from, diagnostics);
  REQUIRE(second);
  CHECK(second->bytes == 1);
  CHECK(from.size() == 1);
}

TEST_CASE("a handle that is cut off anywhere is refused") {
  const Bytes whole = encoded(sample());
  for (size_t n = 0; n < whole.size(); ++n) {
    CHECK_FALSE(mistake({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)}).empty());
  }
}

TEST_CASE("each field is checked") {
  constexpr size_t kVersion = 0, kBytes = 4, kOffset = 12, kOffers = 28, kKind = 29, kLength = 30;
  const auto with = [](size_t at, Bytes value) {
    Bytes bytes = encoded(sample());
    std::copy(value.begin(), value.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    return mistake(bytes);
  };
  const std::string head = "a peer's memory handle is damaged: ";
  CHECK(with(kVersion, {2}) == head + "it has version 2, this is 1");
  CHECK(with(kBytes, {0, 16}) == head + "4096 bytes at 28 lie outside an allocation of 4096");
  CHECK(with(kBytes, Bytes(8, 0xff)) ==
        head + "18446744073709551615 bytes at 28 lie outside an allocation of 4096");
  CHECK(with(kOffset, {0, 0, 1}) == head + "100 bytes at 65536 lie outside an allocation of 4096");
  CHECK(with(kOffers, {9}) == head + "it has 9 offers, at most 8 are allowed");
  CHECK(with(kKind, {6}) == head + "it offers kind 6, which is not known here");
  CHECK(with(kLength, {1, 1}) == head + "an offer has 257 bytes, at most 256 are allowed");
}

TEST_CASE("kinds have names") {
  CHECK(name(HandleKind::same_process) == "same_process");
  CHECK(name(HandleKind::host_fd) == "host_fd");
  CHECK(name(HandleKind::cuda_fd) == "cuda_fd");
  CHECK(name(HandleKind::cuda_fabric) == "cuda_fabric");
  CHECK(name(HandleKind::cuda_ipc) == "cuda_ipc");
  CHECK(name(HandleKind::host_lane) == "host_lane");
}

}  // namespace
}  // namespace mscclc
