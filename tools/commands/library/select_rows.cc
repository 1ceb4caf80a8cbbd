#include "tools/commands/library/select_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/library.h"

namespace mscclc {
namespace {

/// Of an entry: it is no figure of rows.
constexpr const char* kWhy =
    "the first entry of plans/rows/library.json that fits; limits of one shot are measured for 2 "
    "ranks, all others are those of sums of as many bytes";

int report(const Diagnostics& diagnostics, int code) {
  put_error(render_text(diagnostics, Sources(), 1));
  return code;
}

/// "mscclc compile plans/rows/allreduce_norm_1shot.mscl -D R=2 …"
std::string command_of(const Library& library, const RowEntry& entry, const RowCall& call) {
  const std::string folder = library.folder.empty() ? "plans/" : library.folder;
  std::string text = fmt::format("mscclc compile {}rows/{}.mscl", folder, entry.program);
  for (const auto& [name, value] : entry.defines(call)) {
    text += fmt::format(" -D {}={}", name, value);
  }
  return text;
}

std::string rows_text(uint64_t least, uint64_t most) {
  if (most == ~uint64_t{0}) return fmt::format("{} rows and more", least);
  if (least == most) return fmt::format("{} row{}", least, least == 1 ? "" : "s");
  return fmt::format("{} to {} rows", least, most);
}

void show_all(const Library& library, const RowTable& table, RowCall call) {
  for (call.rows = 1;;) {
    const auto [entry, most] = table.choose(call);
    put(fmt::format("# {}\n{}\n", rows_text(call.rows, most), command_of(library, *entry, call)));
    if (most == ~uint64_t{0}) return;
    call.rows = most + 1;
  }
}

void show_why(const RowTable& table, const RowCall& call) {
  const RowEntry* picked = table.choose(call).first;
  std::vector<PassedOver> passed_over;
  for (const RowEntry& e : table.entries()) {
    if (e.name != call.name || &e == picked) continue;
    const auto why = e.why_not(call);
    passed_over.push_back(
        {e.choice_text(call),
         why.value_or(fmt::format("'{}' goes first", picked->choice_text(call)))});
  }
  put(fmt::format("{}: {}\n{}", picked->choice_text(call), kWhy, reasons_text(passed_over)));
}

}  // namespace

bool is_of_rows(const std::string& name) {
  const auto names = builtin_row_table().names();
  return std::ranges::find(names, name) != names.end();
}

int select_rows(const RowSelection& selection) {
  Diagnostics diagnostics;
  const auto library = open_library(selection.library, diagnostics);
  if (!library) return report(diagnostics, kUsage);
  const RowTable& table = builtin_row_table();
  RowCall call = selection.call;
  call.rows = selection.rows.value_or(1);
  if (!table.check(call, diagnostics)) return report(diagnostics, kUsage);
  if (!selection.rows) {
    show_all(*library, table, call);
  } else if (selection.why) {
    show_why(table, call);
  } else {
    put(command_of(*library, *table.choose(call).first, call) + "\n");
  }
  return kFine;
}

std::string reasons_text(const std::vector<PassedOver>& passed_over) {
  struct LikeReasons {
    std::string why;
    std::vector<std::string> names;
  };
  std::vector<LikeReasons> groups;
  for (const PassedOver& p : passed_over) {
    auto group = std::ranges::find(groups, p.why, &LikeReasons::why);
    if (group == groups.end()) group = groups.insert(groups.end(), {p.why, {}});
    group->names.push_back(p.name);
  }
  const auto distance = [](const LikeReasons& g) {
    const bool fits = g.why.ends_with("goes first");
    const bool other_size = g.why.find(" bytes") != std::string::npos;
    return std::pair(fits ? 0 : other_size ? 1 : 2, g.names.size());
  };
  std::ranges::stable_sort(groups, {}, distance);
  std::string text;
  for (const LikeReasons& g : groups) {
    text += fmt::format("\nnot, as {}:\n", g.why);
    for (const std::string& name : g.names) text += fmt::format("  {}\n", name);
  }
  return text;
}

}  // namespace mscclc
