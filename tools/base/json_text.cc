#include "tools/base/json_text.h"

#include "plans/format/json/json_out.h"

namespace mscclc {

std::string json_quoted(const std::string& text) {
  std::string json;
  JsonOut out([&](std::string_view block) {
    json += block;
    return true;
  });
  out.string(text);
  out.flush();
  return json;
}

}  // namespace mscclc
