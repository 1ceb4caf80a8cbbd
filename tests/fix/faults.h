// Mistakes that authors make, put into programs of the library: a word spelt wrong, a signal
// forgotten, an index off by one.
#pragma once

#include <string>
#include <vector>

namespace mscclc::testing {

struct Fault {
  std::string kind;      ///< "a signal is forgotten"
  std::string program;   ///< of the library
  std::string original;  ///< its text
  std::string text;      ///< the same with the mistake
};

/// The kinds of mistakes.
size_t fault_kinds();
/// All places of all programs where a mistake of a kind can be made, in turns through the programs;
/// whether it is a mistake there is for the compiler to say.
std::vector<Fault> faults_of_kind(size_t kind);

}  // namespace mscclc::testing
