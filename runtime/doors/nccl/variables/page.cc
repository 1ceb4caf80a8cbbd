// Rewrites the table of docs/nccl.md.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "ir/base/read_file.h"
#include "runtime/doors/nccl/variables/variables_doc.h"

int main() {
  const char* const folder = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (folder != nullptr && ::chdir(folder) != 0) return 2;
  const std::string page = mscclc::read_file("docs/nccl.md").value_or("");
  const std::string text = mscclc::nccl::with_variables_table(page);
  if (text.empty()) {
    fmt::print(stderr, "docs/nccl.md has no table\n");
    return 1;
  }
  std::ofstream("docs/nccl.md", std::ios::binary | std::ios::trunc) << text;
  return 0;
}
