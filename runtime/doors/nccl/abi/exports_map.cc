// Writes the linker's list of what a library exports: NCCL's functions up to a version, as nccl*
// and pnccl*, and the names that are given after it.
#include <cstdlib>
#include <iostream>

namespace {

struct Row {
  int since;
  const char* name;
};
constexpr Row kRows[] = {
#define API(since, how, result, name, parameters, arguments) {since, #name},
#include "runtime/doors/nccl/abi/api.def"
#undef API
};

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::cerr << "usage: exports_map VERSION [NAME...]\n";
    return 2;
  }
  const int version = std::atoi(words[1]);
  std::cout << "{\n  global:\n";
  for (const Row& row : kRows) {
    if (row.since > version) continue;
    std::cout << "    nccl" << row.name << ";\n    pnccl" << row.name << ";\n";
  }
  for (int i = 2; i < count; ++i) std::cout << "    " << words[i] << ";\n";
  std::cout << "  local:\n    *;\n};\n";
}
