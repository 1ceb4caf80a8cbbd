// Small programs that were once proved and go wrong: each must be refused, and the judge must see
// what is wrong with it.
#pragma once

#include <string>
#include <vector>

namespace mscclc::random_programs {

struct KnownHole {
  const char* name;
  std::string text;
};
std::vector<KnownHole> known_holes();

}  // namespace mscclc::random_programs
