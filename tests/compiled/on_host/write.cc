// Writes the kernels of all plans (plans.h) as sources for the host's compiler, and a table of
// them:
//
//   write plans|rows|random|proved|uneven TABLE SOURCE...
//
// Plans are dealt out to the sources, each in a namespace of its own, as each has names of its own.
#include <fstream>
#include <functional>
#include <iostream>
#include <map>

#include "executor/compiled/emit.h"
#include "tests/compiled/on_host/plans.h"

namespace mscclc {
namespace {

constexpr const char* kInclude = "#include \"tests/compiled/on_host/kernels.h\"\n";

/// The calls that enter a plan's kernels in the table.
std::string entries(const KernelPlan& plan, const std::string& digest) {
  std::string text;
  for (const std::string& name : kernel_names(plan, digest)) {
    text += "  table.add(\"" + name + "\", &" + digest + "::mscclc_" + name + ");\n";
  }
  return text;
}

/// True if all plans that have kernels have been written.
bool write(const std::vector<KernelPlan>& plans, const std::string& table,
           const std::vector<std::string>& sources) {
  const size_t each = (plans.size() + sources.size() - 1) / sources.size();
  std::ofstream all(table);
  all << kInclude;
  std::string calls;
  for (size_t s = 0; s < sources.size(); ++s) {
    std::ofstream out(sources[s]);
    out << kInclude;
    std::string body;
    for (size_t p = s * each; p < std::min(plans.size(), (s + 1) * each); ++p) {
      const std::string digest = kernel_digest(p);
      Diagnostics diagnostics;
      const auto text =
          write_kernels(*plans[p].program, digest, kernel_dtypes(plans[p]), diagnostics);
      if (!text && diagnostics.all().back().code != "no-compiled-kernel") return false;
      if (!text) continue;
      out << "namespace " << digest << " {\n"
          << *text << "}  // namespace " << digest << "\n#undef MSCCLC_CLUSTER\n";
      body += entries(plans[p], digest);
    }
    const std::string name = "add_kernels_" + std::to_string(s);
    out << "namespace mscclc {\nvoid " << name << "(KernelTable& table) {\n" << body << "}\n}\n";
    all << "namespace mscclc { void " << name << "(KernelTable& table); }\n";
    calls += "  " + name + "(table);\n";
  }
  all << "namespace mscclc {\nvoid add_all_kernels(KernelTable& table) {\n" << calls << "}\n}\n";
  return all.good();
}

}  // namespace
}  // namespace mscclc

int main(int argc, char** argv) {
  const std::map<std::string, std::function<std::vector<mscclc::KernelPlan>()>> lists = {
      {"plans", mscclc::kernel_plans},      {"rows", mscclc::fused_row_plans},
      {"random", mscclc::random_row_plans}, {"proved", mscclc::proved_plans},
      {"uneven", mscclc::uneven_row_plans},
  };
  const auto list = lists.find(argc < 4 ? "" : argv[1]);
  if (list == lists.end()) {
    std::cerr << "usage: write plans|rows|random|proved|uneven TABLE SOURCE...\n";
    return 2;
  }
  return mscclc::write(list->second(), argv[2], {argv + 3, argv + argc}) ? 0 : 1;
}
