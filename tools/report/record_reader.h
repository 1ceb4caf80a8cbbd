// Reads the JSON that ranks write for 'mscclc report'.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "ir/diagnostics/printable.h"

namespace mscclc {

/// Takes fields of a file that may hold anything; after the first that is wrong it gives
/// nothing but emptiness.
class RecordReader {
 public:
  const std::string& error() const { return error_; }

  /// Is it a file of the kind whose `key` gives a version, and of this one? Else it fails.
  bool opens(const nlohmann::json& root, const char* key, uint64_t version) {
    if (!root.is_object() || !root.contains(key)) {
      fail("it is not JSON that a rank wrote");
    } else if (number(root, key, ~uint64_t{0}) != version) {
      fail(fmt::format("it is not of version {}", version));
    }
    return error_.empty();
  }
  uint64_t number(const nlohmann::json& of, const char* key, uint64_t most) {
    const nlohmann::json* value = find(of, key);
    if (value != nullptr && value->is_number_unsigned() && value->get<uint64_t>() <= most) {
      return value->get<uint64_t>();
    }
    fail(fmt::format("'{}' is not a number from 0 to {}", key, most));
    return 0;
  }
  /// Text that a terminal can take.
  std::string text(const nlohmann::json& of, const char* key) {
    const nlohmann::json* value = find(of, key);
    if (value != nullptr && value->is_string()) return printable_line(value->get<std::string>());
    fail(fmt::format("'{}' is no text", key));
    return "";
  }
  const nlohmann::json& list(const nlohmann::json& of, const char* key) {
    static const nlohmann::json none = nlohmann::json::array();
    const nlohmann::json* value = find(of, key);
    if (value != nullptr && value->is_array()) return *value;
    fail(fmt::format("'{}' is no list", key));
    return none;
  }
  std::string item(const nlohmann::json& value) {
    if (value.is_string()) return printable_line(value.get<std::string>());
    fail("an item of 'waits' is not text");
    return "";
  }
  uint32_t rank(const nlohmann::json& value) {
    if (value.is_number_unsigned() && value.get<uint64_t>() <= kMaxRank) {
      return value.get<uint32_t>();
    }
    fail("an item of 'awaited' is not a rank");
    return 0;
  }
  void fail(const std::string& why) {
    if (error_.empty()) error_ = why;
  }

  static constexpr uint64_t kMaxRank = 65535;

 private:
  static const nlohmann::json* find(const nlohmann::json& of, const char* key) {
    if (!of.is_object()) return nullptr;
    const auto found = of.find(key);
    return found == of.end() ? nullptr : &*found;
  }

  std::string error_;
};

}  // namespace mscclc
