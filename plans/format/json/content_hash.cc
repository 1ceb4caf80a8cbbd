#include "plans/format/json/content_hash.h"

#include <xxhash.h>

namespace mscclc {

struct ContentHash::State {
  XXH3_state_t xxh;
};

ContentHash::ContentHash() : state_(new State) { XXH3_128bits_reset(&state_->xxh); }
ContentHash::~ContentHash() = default;

void ContentHash::update(std::string_view bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::string ContentHash::digits() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  std::string out;
  for (const unsigned char byte : canonical.digest) {
    constexpr char kHex[] = "0123456789abcdef";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

}  // namespace mscclc
