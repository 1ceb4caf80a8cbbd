#include "tests/rows/row_plans.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "compiler/compile.h"
#include "ir/support/read_file.h"

namespace mscclc::testing {
namespace {

const std::string kRowFolder = "tests/rows/programs/", kRowLibrary = "plans/rows/";

Program compiled_rows(const std::string& path, const std::string& text, const RowDefines& defines) {
  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions options;
  options.defines = defines;
  options.read_file = [](const std::string& path) { return read_file(path); };
  std::optional<Program> program =
      compile(sources, sources.add(path, text), options, {}, diagnostics);
  if (program) return *std::move(program);
  std::fputs(render_text(diagnostics, sources).c_str(), stderr);
  std::abort();
}

}  // namespace

Program row_plan_of(const std::string& text, const RowDefines& defines) {
  return compiled_rows(kRowFolder + "a.mscl", text, defines);
}

Program row_plan(const std::string& name, const RowDefines& defines, const std::string& more) {
  return row_plan_of(read_file(kRowFolder + name + ".mscl").value() + more, defines);
}

std::vector<std::string> row_programs() {
  return {"allreduce_groups", "allreduce_norm", "allreduce_owner", "allreduce_state",
          "reducescatter_quantize"};
}

std::vector<std::string> uneven_row_programs() {
  return {"next_rows_first", "own_rows_copied", "several_chunks", "several_chunks_of_group"};
}

Program library_row_plan(const std::string& name, const RowDefines& defines) {
  const std::string path = kRowLibrary + name + ".mscl";
  return compiled_rows(path, read_file(path).value(), defines);
}

bool is_of_two_ranks(const std::string& name) { return name.ends_with("_read"); }

std::vector<std::string> library_row_programs(uint32_t ranks) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kRowLibrary)) {
    const std::string name = entry.path().stem().string();
    const bool is_program = entry.path().extension() == ".mscl" && name != "functions";
    if (is_program && (ranks == 2 || !is_of_two_ranks(name))) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace mscclc::testing
