#include "tools/lsp/protocol/json.h"

namespace mscclc::lsp {

const Json& member(const Json& object, const char* name) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

std::optional<std::string> text_of(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

std::optional<uint64_t> number_of(const Json& object, const char* name, uint64_t most) {
  const Json& value = member(object, name);
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto number = value.get<uint64_t>();
  if (number > most) return std::nullopt;
  return number;
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mscclc::lsp
