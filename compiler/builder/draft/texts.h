// Numbers and lists as messages of the builder write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/builder/draft/list.h"

namespace mscclc {

/// "1 chunk", "8 chunks".
std::string counted(int64_t n, std::string_view noun);
/// "once", "twice", "3 times"; after another number, "three times" reads better.
std::string times(int64_t n, bool in_words = false);
/// "[1, 2, 3]", shortened in the middle if long.
std::string list_text(const List& list);
/// "0..4" if that is what it is.
std::string blocks_text(const List& list);

}  // namespace mscclc
