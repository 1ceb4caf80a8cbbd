#include "ir/diagnostics/diagnostic.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mscclc {
namespace {

/// What makes two diagnostics the same mistake.
std::string identity(const Diagnostic& d) {
  std::string key = d.code;
  const auto add = [&key](std::string_view part) {
    key += '\0';
    key += part;
  };
  if (!d.span.valid()) {
    add(d.path);
    add(d.message);
    return key;
  }
  add(d.file);
  for (const uint32_t n : {d.span.file, d.span.begin, d.span.end, d.span.line, d.span.column}) {
    add(std::to_string(n));
  }
  return key;
}

/// Edits that still look like a slip of the pen in a word of this length.
size_t tolerance(size_t length) { return length < 2 ? 0 : 1 + (length - 2) / 3; }

/// Optimal string alignment distance: insert, delete, replace, swap neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

Diagnostic& Diagnostics::error(std::string code, Span span, std::string message) {
  Diagnostic d;
  d.code = std::move(code);
  d.span = span;
  d.message = std::move(message);
  return add(std::move(d));
}

Diagnostic& Diagnostics::warning(std::string code, Span span, std::string message) {
  Diagnostic d;
  d.severity = Severity::warning;
  d.code = std::move(code);
  d.span = span;
  d.message = std::move(message);
  return add(std::move(d));
}

Diagnostic& Diagnostics::error_at(std::string code, std::string path, std::string message) {
  Diagnostic d;
  d.code = std::move(code);
  d.path = std::move(path);
  d.message = std::move(message);
  return add(std::move(d));
}

Diagnostic& Diagnostics::add(Diagnostic d) {
  if (!seen_.insert(identity(d)).second) {
    repeated_ = std::move(d);
    return repeated_;
  }
  if (d.severity == Severity::error) ++errors_;
  list_.push_back(std::move(d));
  return list_.back();
}

std::string nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  size_t best = tolerance(name.size()) + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    const size_t longer = std::max(candidate.size(), name.size());
    if (longer - std::min(candidate.size(), name.size()) >= best) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance > 0 && distance < best && distance < longer) {
      best = distance;
      found = candidate;
    }
  }
  return std::string(found);
}

}  // namespace mscclc
