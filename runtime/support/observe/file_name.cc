#include "runtime/support/observe/file_name.h"

#include <unistd.h>

namespace mscclc {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string expand_file_name(std::string_view pattern, std::optional<uint32_t> rank) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      name += pattern[i];
      continue;
    }
    const char what = ++i < pattern.size() ? pattern[i] : '\0';
    if (what == 'h') {
      name += host_name();
    } else if (what == 'p') {
      name += std::to_string(::getpid());
    } else if (what == 'r' && rank) {
      name += std::to_string(*rank);
    } else if (what == '%') {
      name += '%';
    } else {
      return "";
    }
  }
  return name;
}

}  // namespace mscclc
