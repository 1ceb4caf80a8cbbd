#include "tools/io/json_text.h"

#include <nlohmann/json.hpp>

namespace mscclc {

std::string json_quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace mscclc
