// Members of a JSON object from outside: each may be missing or of another type.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace mscclc::lsp {

using Json = nlohmann::json;

/// The member of that name; null if `object` is no object or has none.
const Json& member(const Json& object, const char* name);
/// Its text; nothing if it is none.
std::optional<std::string> text_of(const Json& object, const char* name);
/// Its number, if it is whole and neither negative nor above `most`.
std::optional<uint64_t> number_of(const Json& object, const char* name, uint64_t most);
/// As one line of text; what is not UTF-8 is replaced.
std::string to_text(const Json& json);

}  // namespace mscclc::lsp
