#include "tests/rows/row_plans.h"

#include <cstdio>
#include <cstdlib>

#include "compiler/compile.h"
#include "ir/base/read_file.h"

namespace mscclc::testing {
namespace {

const std::string kRowFolder = "tests/rows/programs/";

}  // namespace

Program row_plan_of(const std::string& text, const RowDefines& defines) {
  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions options;
  options.defines = defines;
  options.read_file = [](const std::string& path) { return read_file(path); };
  std::optional<Program> program =
      compile(sources, sources.add(kRowFolder + "a.mscl", text), options, {}, diagnostics);
  if (program) return *std::move(program);
  std::fputs(render_text(diagnostics, sources).c_str(), stderr);
  std::abort();
}

Program row_plan(const std::string& name, const RowDefines& defines, const std::string& more) {
  return row_plan_of(read_file(kRowFolder + name + ".mscl").value() + more, defines);
}

std::vector<std::string> row_programs() {
  return {"allreduce_groups", "allreduce_norm", "allreduce_owner", "reducescatter_quantize"};
}

}  // namespace mscclc::testing
