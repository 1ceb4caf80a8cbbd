#include "ir/support/source.h"

#include <algorithm>
#include <utility>

namespace mscclc {

FileId Sources::add(std::string name, std::string text) {
  files_.push_back({std::move(name), std::move(text)});
  return static_cast<FileId>(files_.size() - 1);
}

std::string_view Sources::line_of(const Span& span) const {
  if (!span.valid() || span.file >= files_.size()) return {};
  const std::string_view text = files_[span.file].text;
  const size_t at = std::min<size_t>(span.begin, text.size());
  const size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
}

}  // namespace mscclc
