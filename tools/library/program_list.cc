#include "tools/library/program_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "plans/format/row_table.h"
#include "tools/io/json_text.h"
#include "tools/io/library.h"

namespace mscclc {
namespace {

/// The word after "collective" in a program's text.
std::string collective_of(std::string_view text) {
  constexpr std::string_view kLine = "\ncollective ";
  const size_t at = text.find(kLine) + kLine.size();
  return std::string(text.substr(at, text.find('(', at) - at));
}

/// The collectives of rows whose calls may get a program.
std::vector<std::string> row_collectives(std::string_view program) {
  std::vector<std::string> names;
  for (const RowEntry& entry : builtin_row_table().entries()) {
    if (entry.program != program || std::ranges::count(names, entry.name) != 0) continue;
    names.push_back(entry.name);
  }
  return names;
}

/// The lines of the comment that a program begins with, as one.
std::string comment_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string comment;
  for (std::string line; std::getline(in, line) && line.starts_with("# ");) {
    comment += (comment.empty() ? "" : " ") + line.substr(2);
  }
  return comment;
}

std::string summary_of(std::string_view text) {
  const std::string comment = comment_of(text);
  const size_t end = std::min(comment.find(". "), comment.find(": "));
  std::string summary = comment.substr(0, end);
  if (summary.ends_with('.')) summary.pop_back();
  return summary;
}

}  // namespace

std::vector<ListedProgram> list_programs() {
  std::vector<ListedProgram> list;
  for (const NamedProgram& program : named_programs()) {
    std::vector<std::string> collectives = {collective_of(program.text)};
    if (program.of_rows) collectives = row_collectives(program.name);
    list.push_back({std::string(program.name), std::move(collectives), program.of_rows,
                    summary_of(program.text)});
  }
  return list;
}

std::string list_text(const std::vector<ListedProgram>& programs) {
  size_t name_width = 0;
  for (const ListedProgram& program : programs) {
    name_width = std::max(name_width, program.name.size());
  }
  std::vector<std::string> groups;  // in the order in which they come
  std::map<std::string, std::string> lines;
  for (const ListedProgram& program : programs) {
    const std::string group = fmt::format("{}", fmt::join(program.collectives, ", "));
    if (!lines.contains(group)) groups.push_back(group);
    lines[group] += fmt::format("  {:<{}}  {}\n", program.name, name_width, program.summary);
  }
  std::string text;
  for (const std::string& group : groups) {
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", group, lines[group]);
  }
  return text;
}

std::string list_json(const std::vector<ListedProgram>& programs) {
  std::string text;
  for (const ListedProgram& program : programs) {
    std::string collectives;
    for (const std::string& name : program.collectives) {
      collectives += (collectives.empty() ? "" : ", ") + json_quoted(name);
    }
    text += fmt::format(R"({{"program": {}, "collectives": [{}], "rows": {}, "summary": {}}})"
                        "\n",
                        json_quoted(program.name), collectives, program.of_rows,
                        json_quoted(program.summary));
  }
  return text;
}

}  // namespace mscclc
