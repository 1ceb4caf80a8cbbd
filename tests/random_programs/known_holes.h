// Small programs that were once proved and go wrong: each must be refused, and the judge must see
// what is wrong with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mscclc::random_programs {

struct KnownHole {
  const char* name;
  std::string text;
  uint32_t since;  ///< the version of the prover that refuses it first; 0: long ago
};
std::vector<KnownHole> known_holes();
std::vector<KnownHole> holes_of_version_3();
std::vector<KnownHole> holes_of_version_8();

/// Plans that are right alone, on the same ranks.
struct KnownSetHole {
  const char* name;
  std::vector<std::string> texts;
  uint32_t since;
};
std::vector<KnownSetHole> set_holes_of_version_3();

}  // namespace mscclc::random_programs
