#include "tools/io/sizes.h"

#include <charconv>

namespace mscclc {
namespace {

constexpr size_t kMaxSizes = 10000;

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int shift_of(std::string_view unit) {
  if (unit == "K" || unit == "k" || unit == "KiB") return 10;
  if (unit == "M" || unit == "m" || unit == "MiB") return 20;
  if (unit == "G" || unit == "g" || unit == "GiB") return 30;
  if (unit.empty()) return 0;
  return -1;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// "1K:1M:4", or "1K:1M:+2K" where the last part is added instead of multiplied with.
struct Range {
  uint64_t min, max, by;
  bool adds;
};

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

Result<Range> parse_range(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() > 3) return Error{quoted(text) + " has more than three parts"};
  Range range{0, 0, 2, false};
  uint64_t* const fields[] = {&range.min, &range.max, &range.by};
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string_view part = parts[i];
    if (i == 2 && part.starts_with('+')) {
      range.adds = true;
      part.remove_prefix(1);
    }
    const auto value = i == 2 && !range.adds ? parse_number(part) : parse_bytes(part);
    if (!value) {
      return Error{quoted(parts[i]) + (i == 2 ? " is neither a factor nor a step such as '+1K'"
                                              : " is not a size such as 512, 64K or 1M")};
    }
    *fields[i] = *value;
  }
  if (parts.size() == 1) range.max = range.min;
  return range;
}

Result<void> append(std::string_view text, std::vector<uint64_t>& sizes) {
  const auto range = parse_range(text);
  if (!range) return range.error();
  if (range->min > range->max) {
    return Error{"the range " + quoted(text) + " ends before it begins"};
  }
  if (range->by < (range->adds ? 1u : 2u)) {  // of no use, even where there is one size only
    return Error{"the range " + quoted(text) + " does not grow"};
  }
  if (range->min == 0 && range->max != 0 && !range->adds) {
    return Error{"the range " + quoted(text) + " begins at 0, which no factor can leave"};
  }
  for (uint64_t size = range->min;;) {
    sizes.push_back(size);
    if (sizes.size() > kMaxSizes) {
      return Error{"more than " + std::to_string(kMaxSizes) + " sizes"};
    }
    uint64_t next = 0;
    const bool overflow = range->adds ? __builtin_add_overflow(size, range->by, &next)
                                      : __builtin_mul_overflow(size, range->by, &next);
    if (overflow || next > range->max || next == size) return {};
    size = next;
  }
}

}  // namespace

std::optional<uint64_t> parse_bytes(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto value = parse_number(text.substr(0, digits));
  const int shift = shift_of(text.substr(digits));
  if (!value || shift < 0 || *value > (~uint64_t{0} >> shift)) return std::nullopt;
  return *value << shift;
}

Result<std::vector<uint64_t>> parse_sizes(std::string_view text) {
  std::vector<uint64_t> sizes;
  for (const std::string_view part : split(text, ',')) {
    if (const auto appended = append(part, sizes); !appended) return appended.error();
  }
  return sizes;
}

}  // namespace mscclc
