#include "tools/commands/library/select_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/library.h"

namespace mscclc {
namespace {

constexpr const char* kWhereLimitsAreFrom =
    "limits for 2 ranks are measured; others are the cost model's";
constexpr uint64_t kAny = ~uint64_t{0};
/// Of a row that a GPU's kernel takes: 64 columns for each of 1024 threads.
constexpr uint64_t kMostColumnsOfKernel = 65'536;

int report(const Diagnostics& diagnostics, int code) {
  put_error(render_text(diagnostics, Sources(), 1));
  return code;
}

/// "mscclc compile plans/rows/allreduce_norm_1shot.mscl -D R=2 …"; by its name, as it is compiled
/// in, where that file is not.
std::string command_of(const Library& library, const RowEntry& entry, const RowCall& call) {
  const std::string file = fmt::format("{}rows/{}.mscl", library.folder, entry.program);
  const bool is_there = !library.folder.empty() && std::filesystem::exists(file);
  std::string text = fmt::format("mscclc compile {}", is_there ? file : entry.program);
  for (const auto& [name, value] : entry.defines(call)) {
    text += fmt::format(" -D {}={}", name, value);
  }
  return text;
}

std::string rows_count(uint64_t rows) {
  return fmt::format("{} row{}", rows, rows == 1 ? "" : "s");
}

std::string rows_text(uint64_t least, uint64_t most) {
  if (most == kAny) return fmt::format("{} rows and more", least);
  if (least == most) return rows_count(least);
  return fmt::format("{} to {} rows", least, most);
}

void show_all(const Library& library, const RowTable& table, RowCall call) {
  for (call.rows = 1;;) {
    const auto [entry, most] = table.choose(call);
    put(fmt::format("# {}\n{}\n", rows_text(call.rows, most), command_of(library, *entry, call)));
    if (most == kAny) return;
    call.rows = most + 1;
  }
}

/// "2 ranks, at most 64 rows and 4194304 bytes, here 64 rows"
std::string limits_text(const RowEntry& entry, uint64_t most_here) {
  std::string text = entry.max_ranks == RowEntry().max_ranks ? std::string("any number of ranks")
                     : entry.min_ranks == entry.max_ranks
                         ? fmt::format("{} ranks", entry.min_ranks)
                         : fmt::format("{} to {} ranks", entry.min_ranks, entry.max_ranks);
  std::vector<std::string> limits;
  if (entry.rows != kAny) limits.push_back(rows_count(entry.rows));
  if (entry.bytes != kAny) limits.push_back(fmt::format("{} bytes", entry.bytes));
  if (limits.empty()) return text + ", whatever the size";
  return fmt::format("{}, at most {}, here {}", text, fmt::join(limits, " and "),
                     rows_count(most_here));
}

void show_why(const RowTable& table, const RowCall& call) {
  const auto [picked, most] = table.choose(call);
  const std::string name = picked->choice_text(call);
  std::vector<PassedOver> passed_over;
  for (const RowEntry& e : table.entries()) {
    if (e.name != call.name || &e == picked) continue;
    const auto why = e.why_not(call);
    passed_over.push_back(
        {e.choice_text(call), why.value_or(fmt::format("'{}' goes first", name))});
  }
  put(fmt::format("{}: the first entry of plans/rows/library.json that fits: it is for {}\n{}\n{}",
                  name, limits_text(*picked, most), kWhereLimitsAreFrom,
                  reasons_text(passed_over)));
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
  if (call.columns > kMostColumnsOfKernel) {
    put_error(
        fmt::format("note: no kernel of GPUs takes rows of more than {} columns; ranks on "
                    "processors do\n",
                    kMostColumnsOfKernel));
  }
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
