// Words of settings in which the case of letters does not matter, as in NCCL's.
#pragma once

#include <string>

namespace mscclc {

/// With capital letters; what is not ASCII stays.
inline std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

}  // namespace mscclc
