#include "runtime/support/environment/environment_doc.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostics/printable.h"

namespace mscclc {
namespace {

constexpr std::string_view kPageHead = R"(# Environment variables

<!-- Made from runtime/support/environment/environment.def by: mscclc env --format=markdown > docs/environment.md -->

What the runtime reads; PyTorch's backend also reads its own, `TORCH_MSCCLC_…`. A value that is not allowed is an error that names the variable.
Those that begin with `MSCCLC_` are all looked at when a communicator is made, whether it needs
them or not. Of NCCL's own variables NCCL takes any value, so those, except `NCCL_COMM_ID`, with a value
that is not allowed only bring a warning in the log, and count as not set. A variable that is set to
nothing counts as not set. The first communicator of a process warns of names that begin with `MSCCLC_`
and are not listed here, on standard error or in `MSCCLC_DEBUG_FILE`, also where nothing else
is logged; every `mscclc` command does so itself. [runtime.md](runtime.md#how-ranks-meet) says how ranks
meet.
)";

struct Section {
  VariableGroup group;
  std::string_view title;
};
constexpr Section kSections[] = {
    {VariableGroup::ours, "Set by you"},
    {VariableGroup::nccl, "Set by you for NCCL, and read by mscclc's own libnccl.so.2"},
    {VariableGroup::cuda, "Set by you for CUDA"},
    {VariableGroup::torchrun, "Set by torchrun, or by you in its manner"},
    {VariableGroup::openmpi, "Set by Open MPI's mpirun"},
    {VariableGroup::slurm, "Set by Slurm's srun"},
    {VariableGroup::system, "Set by the system"},
};

std::string allowed(const VariableInfo& row) {
  switch (row.kind) {
    case VariableKind::count:
      return fmt::format("{} to {}", row.least, row.most);
    case VariableKind::seconds:
      return fmt::format("{} to {} seconds", row.least, row.most);
    case VariableKind::text:
      if (const auto words = words_of(row.variable); !words.empty()) {
        return fmt::format("{}", fmt::join(words, ", "));
      }
      [[fallthrough]];
    case VariableKind::secret:
      return fmt::format("up to {} bytes", row.most);
  }
  return "";
}

/// Lines of at most kWidth characters, each after `indent` spaces.
std::string wrapped(std::string_view text, size_t indent) {
  constexpr size_t kWidth = 100;
  const std::string margin(indent, ' ');
  std::string out;
  while (!text.empty()) {
    size_t end = text.size();
    if (indent + end > kWidth) end = text.rfind(' ', kWidth - indent);
    out += fmt::format("{}{}\n", margin, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::string environment_reference() {
  std::string out(kPageHead);
  for (const Section& section : kSections) {
    out += fmt::format("\n## {}\n\n| variable | allowed | default | meaning |\n|---|---|---|---|\n",
                       section.title);
    for (const VariableInfo& row : variable_table()) {
      if (row.group != section.group) continue;
      out += fmt::format("| `{}` | {} | {} | {} |\n", row.name, allowed(row),
                         row.fallback.empty() ? "" : fmt::format("`{}`", row.fallback), row.help);
    }
  }
  return out;
}

namespace {

/// The variables that are set; of secrets only that they are.
std::string set_text(const Environment& environment) {
  std::string out = "Set now:\n";
  bool any = false;
  for (const VariableInfo& row : variable_table()) {
    if (row.group == VariableGroup::system || !environment.has(row.variable)) continue;
    any = true;
    const std::string_view value = environment.raw(row.variable);
    out += fmt::format("  {}={}\n", row.name,
                       row.kind == VariableKind::secret ? "(secret)" : printable_line(value));
  }
  return any ? out : out + "  none of these\n";
}

}  // namespace

std::string environment_text(const Environment& environment) {
  std::string out = set_text(environment);
  for (const Section& section : kSections) {
    out += fmt::format("{}{}:\n", out.empty() ? "" : "\n", section.title);
    for (const VariableInfo& row : variable_table()) {
      if (row.group != section.group) continue;
      out += fmt::format("  {} ({}{})\n{}", row.name, allowed(row),
                         row.fallback.empty() ? "" : fmt::format("; default {}", row.fallback),
                         wrapped(row.help, 6));
    }
  }
  return out;
}

}  // namespace mscclc
