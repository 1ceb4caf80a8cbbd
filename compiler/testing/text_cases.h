// Test cases as text: '=== name', a program, '---', what comes of it. Lines of the program may say
// more: '#-D R=4' gives a parameter, '#max 10' the most ops, '#file lib.mscl' begins another file
// that the program may import, '#ir' asks for the IR after the messages.
#pragma once

#include <functional>
#include <string>

#include "compiler/compile.h"

namespace mscclc {

struct TextCase {
  std::string name, text, expected;
};

/// Calls `check` for each case of a file.
int each_case(const std::string& path, const std::function<void(const TextCase&)>& check);

/// All messages about the program, then its IR if '#ir' asks for it.
std::string outcome(const std::string& text);

}  // namespace mscclc
