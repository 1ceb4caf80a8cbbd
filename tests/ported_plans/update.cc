// Rewrites the table of docs/design/passes.md.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "ir/support/read_file.h"
#include "tests/ported_plans/ported_plans.h"

int main() {
  const char* folder = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (folder != nullptr && chdir(folder) != 0) return 2;
  const auto table = mscclc::ported_plans_table();
  const std::string page = mscclc::read_file("docs/design/passes.md").value();
  const std::string text = table ? mscclc::with_table(page, *table) : "";
  if (text.empty()) {
    fmt::print(stderr, "{}", table ? "docs/design/passes.md has no table\n" : table.error().text());
    return 1;
  }
  std::ofstream("docs/design/passes.md", std::ios::binary | std::ios::trunc) << text;
  return 0;
}
