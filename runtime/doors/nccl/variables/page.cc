// Rewrites the parts of docs/nccl.md and docs/design/nccl.md that the table of variables makes.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "ir/support/read_file.h"
#include "runtime/doors/nccl/variables/variables_doc.h"

int main() {
  const char* const folder = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (folder != nullptr && ::chdir(folder) != 0) return 2;
  for (const mscclc::nccl::GeneratedPart& part : mscclc::nccl::generated_parts()) {
    const std::string page = mscclc::read_file(part.page).value_or("");
    const std::string text = mscclc::nccl::with_generated(page, part);
    if (text.empty()) {
      fmt::print(stderr, "{} has no marks of a table\n", part.page);
      return 1;
    }
    std::ofstream(part.page, std::ios::binary | std::ios::trunc) << text;
  }
  return 0;
}
