// What a source file defines that the linker, or the one definition rule, sees by name: types,
// functions, variables outside of unnamed namespaces. Read from the text, without a compiler:
// enough to find two different things of one name in two files, which no compiler reports.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mscclc::structure {

struct Definition {
  std::string name;  ///< with its namespaces; functions with the types of their parameters
  size_t line = 0;
};

/// All definitions of a file in written order. Throws std::runtime_error with the line where braces
/// do not match, or where the file has a construct that this reader does not know.
std::vector<Definition> definitions(std::string_view source);

/// What several of these files (text by path) define: their paths by name. Only names of our
/// namespace count, as every program has its `main`; and of x.cc and x_without_gpu.cc, or
/// x_on_host.cc, the build takes one, as of accesses and their twins on the host.
std::map<std::string, std::set<std::string>> doubles(
    const std::map<std::string, std::string>& sources);

}  // namespace mscclc::structure
