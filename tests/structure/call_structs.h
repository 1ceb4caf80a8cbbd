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

struct CallStructs {
  /// With members of their own for how much a call moves, of which type, and how that is added up;
  /// or with one of these, beside such a struct that is a base.
  std::vector<Found> anew;
  /// Those that only have such a struct as a base: they describe nothing anew, as one that holds
  /// it.
  std::vector<Found> derived;
};

/// Keys of maps (…Key) do not count: they only name a call. `sources`: text by path.
CallStructs call_structs(const std::map<std::string, std::string>& sources);

/// Switches with a case for a kind of collectives.
std::vector<Found> kind_switches(const std::map<std::string, std::string>& sources);

/// Comparisons with a kind. In assertions of the compiler they are none: these hold public
/// constants against the table.
std::vector<Found> kind_comparisons(const std::map<std::string, std::string>& sources);

}  // namespace mscclc::structure
