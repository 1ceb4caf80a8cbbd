#include "runtime/bootstrap/wire/records.h"

#include <sodium.h>

#include <cstring>

#include "ir/support/precondition.h"

namespace mscclc::wire {
namespace {

constexpr uint64_t kHead = 4;
constexpr uint64_t kTag = crypto_aead_chacha20poly1305_ietf_ABYTES;
static_assert(sizeof(SessionKey) == crypto_aead_chacha20poly1305_ietf_KEYBYTES);

/// A key seals in one direction of one connection only, so a number is a nonce.
using RecordNonce = std::array<uint8_t, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;
RecordNonce nonce_of(uint64_t number) {
  RecordNonce nonce{};
  std::memcpy(nonce.data(), &number, sizeof number);
  return nonce;
}

}  // namespace

void Sealer::seal(Payload plain, Bytes& to) {
  precondition(!plain.empty() && plain.size() <= kMaxRecord);
  const auto length = static_cast<uint32_t>(plain.size() + kTag);
  const size_t at = to.size();
  to.resize(at + kHead + length);
  uint8_t* const head = to.data() + at;
  std::memcpy(head, &length, kHead);
  const RecordNonce nonce = nonce_of(number_++);
  crypto_aead_chacha20poly1305_ietf_encrypt(head + kHead, nullptr, plain.data(), plain.size(), head,
                                            kHead, nullptr, nonce.data(), key_.data());
}

Opener::Next Opener::next(Bytes& plain) {
  if (bad_) return Next::bad;
  const auto begin = buffer_.begin();
  if (at_ == buffer_.size() || at_ > kMaxRecord) {
    buffer_.erase(begin, begin + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
  }
  const uint64_t left = buffer_.size() - at_;
  if (left < kHead) return Next::more;
  const uint8_t* const head = buffer_.data() + at_;
  uint32_t length = 0;
  std::memcpy(&length, head, kHead);
  bad_ = length <= kTag || length > kMaxRecord + kTag;
  if (bad_) return Next::bad;
  if (left < kHead + length) return Next::more;
  plain.resize(length - kTag);
  const RecordNonce nonce = nonce_of(number_);
  bad_ = crypto_aead_chacha20poly1305_ietf_decrypt(plain.data(), nullptr, nullptr, head + kHead,
                                                   length, head, kHead, nonce.data(),
                                                   key_.data()) != 0;
  if (bad_) return Next::bad;
  ++number_;
  at_ += kHead + length;
  return Next::record;
}

}  // namespace mscclc::wire
