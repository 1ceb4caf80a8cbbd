#include "tools/io/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "ir/diagnostics/printable.h"
#include "tools/io/files.h"

namespace mscclc {
namespace {

constexpr size_t kTextColumn = 26;

std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (column != indent && column + 1 + word.size() > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column != indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

std::string entry(const std::string& name, const std::string& text) {
  std::string line = "  " + name;
  if (line.size() + 2 > kTextColumn) {
    line += '\n' + std::string(kTextColumn, ' ');
  } else {
    line.resize(kTextColumn, ' ');
  }
  return line + wrapped(text, kTextColumn, 100) + '\n';
}

std::string option_name(const CLI::Option& option) {
  std::string name;
  for (const std::string& s : option.get_snames()) name += (name.empty() ? "-" : ", -") + s;
  for (const std::string& l : option.get_lnames()) name += (name.empty() ? "--" : ", --") + l;
  const std::string type = type_of(option);
  if (!type.empty()) name += (option.get_lnames().empty() ? " " : "=") + type;
  return name;
}

std::string usage(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "usage: mscclc COMMAND [OPTIONS] [FILE]\n";
  std::string text = "usage: mscclc " + app.get_name() + " [OPTIONS]";
  for (const CLI::Option* o : app.get_options()) {
    if (!o->get_positional()) continue;
    const std::string many = o->get_items_expected_max() > 1 ? "..." : "";
    text += o->get_required() ? " " + type_of(*o) + many : " [" + type_of(*o) + many + "]";
  }
  return text + "\n";
}

}  // namespace

// CLI11 appends what a value is checked for: "KIND:{plan,ir}".
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

Command& CommandLine::add(const std::string& name, const std::string& summary,
                          const std::string& examples) {
  commands.push_back({app.add_subcommand(name, summary), {}, examples});
  return commands.back();
}

CLI::Option* CommandLine::takes(CLI::Option* option, std::vector<std::string> list) {
  words[option] = std::move(list);
  return option;
}

CLI::Option* CommandLine::takes_text(CLI::Option* option) {
  free_text[option] = true;
  return option;
}

CLI::Option* CommandLine::writes(CLI::Option* option) {
  outputs.push_back(option);
  return option;
}

std::optional<Error> CommandLine::overwrites(const std::vector<std::string>& read) const {
  for (const CLI::Option* output : outputs) {
    for (const std::string& file : output->results()) {
      if (std::ranges::none_of(read, [&](const auto& r) { return same_file(file, r); })) continue;
      return Error{fmt::format("{} {} would replace a file that is read", output->get_name(),
                               quoted(file, file.size()))};
    }
  }
  return std::nullopt;
}

std::optional<Error> CommandLine::overwrites(const CLI::App& command) const {
  std::vector<std::string> read;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 0 || free_text.contains(option) ||
        std::ranges::count(outputs, option) != 0) {
      continue;
    }
    const auto known = words.find(option);
    std::ranges::copy_if(option->results(), std::back_inserter(read), [&](const auto& value) {
      return known == words.end() || std::ranges::count(known->second, value) == 0;
    });
  }
  return overwrites(read);
}

std::string help_text(const CommandLine& line, const CLI::App& app) {
  std::string text = app.get_description() + "\n\n" + usage(app);
  std::string arguments, options, commands;
  for (const CLI::Option* o : app.get_options()) {
    if (o->get_positional()) {
      arguments += entry(type_of(*o), o->get_description());
    } else {
      options += entry(option_name(*o), o->get_description());
    }
  }
  for (const CLI::App* sub : app.get_subcommands({})) {
    commands += entry(sub->get_name(), sub->get_description());
  }
  if (!commands.empty()) text += "\ncommands:\n" + commands;
  if (!arguments.empty()) text += "\n" + arguments;
  text += "\noptions:\n" + options;
  for (const Command& c : line.commands) {
    if (c.app == &app && !c.examples.empty()) text += "\nexamples:\n" + c.examples;
  }
  if (app.get_parent() == nullptr) text += "\n" + app.get_footer();
  return text;
}

}  // namespace mscclc
