// Data of a source file that lives as long as the program, or a thread, and can change: read from
// the text, without a compiler.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mscclc::structure {

struct MutableGlobal {
  std::string name;
  size_t line = 0;
};

/// Variables of namespaces, static ones of functions, and inline static ones of classes, which are
/// not const or constexpr; those that other files define (`extern`) are not counted. Throws
/// std::runtime_error with the line where brackets do not match.
std::vector<MutableGlobal> mutable_globals(std::string_view source);

}  // namespace mscclc::structure
