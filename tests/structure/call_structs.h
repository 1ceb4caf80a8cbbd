// How often a call is described on its way from a door to the kernel, and where a door has cases
// for kinds of collectives that the table of collectives should have: read from the text.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace mscclc::structure {

/// A place in a source.
struct Found {
  std::string name, path;
  size_t line = 0;
};

/// Structs with members of their own for how much a call moves, of which type, and how that is
/// added up. One that holds another, or has it as its base, describes nothing anew. Keys of maps
/// (…Key) do not count: they only name a call. `sources`: text by path.
std::vector<Found> call_structs(const std::map<std::string, std::string>& sources);

/// Switches with a case for a kind of collectives.
std::vector<Found> kind_switches(const std::map<std::string, std::string>& sources);

}  // namespace mscclc::structure
