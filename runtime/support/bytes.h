// Numbers and byte strings in messages: little endian, every length checked by the reader.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mscclc {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "messages are written as they lie");

class ByteWriter {
 public:
  explicit ByteWriter(std::vector<uint8_t>& to) : to_(to) {}
  template <class T>
  requires std::is_arithmetic_v<T> ByteWriter& number(T value) {
    return append(&value, sizeof value);
  }
  ByteWriter& bytes(std::span<const uint8_t> bytes) { return append(bytes.data(), bytes.size()); }
  ByteWriter& text(std::string_view text) { return append(text.data(), text.size()); }

 private:
  ByteWriter& append(const void* from, size_t count) {
    const size_t at = to_.size();
    to_.resize(at + count);
    if (count > 0) std::memcpy(to_.data() + at, from, count);
    return *this;
  }

  std::vector<uint8_t>& to_;
};

/// Takes fields from the front. Once something was missing, all that follows fails too, so that
/// one look at good() after the last field is enough.
class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> from) : from_(from) {}
  bool good() const { return good_; }
  /// Everything was there, and nothing follows.
  bool ended() const { return good_ && from_.empty(); }
  std::span<const uint8_t> rest() const { return from_; }

  template <class T>
  requires std::is_arithmetic_v<T> T number() {
    T value{};
    const std::span<const uint8_t> raw = bytes(sizeof value);
    if (good_) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::span<const uint8_t> bytes(uint64_t count) {
    if (!good_ || count > from_.size()) {
      good_ = false;
      return {};
    }
    const std::span<const uint8_t> taken = from_.first(count);
    from_ = from_.subspan(count);
    return taken;
  }
  /// Text is whatever bytes come; printing it makes it printable.
  std::string_view text(uint64_t count) {
    const std::span<const uint8_t> raw = bytes(count);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }

 private:
  std::span<const uint8_t> from_;
  bool good_ = true;
};

}  // namespace mscclc
