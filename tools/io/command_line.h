// The frame of the mscclc command: what a subcommand registers with, and the exit codes.
//
// Each subcommand is one file with one `add_NAME` function: it says how options are declared, and
// what to do once they are parsed.
#pragma once

#include <CLI/App.hpp>
#include <charconv>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "ir/support/result.h"
#include "runtime/support/version.h"

namespace mscclc {

/// What the process returns; scripts depend on these.
enum ExitCode : int {
  kFine = 0,
  kWrongProgram = 1,  ///< the program or plan is wrong
  kUsage = 2,         ///< the command line is, or a file cannot be read or written
  kWrongResult = 3,   ///< the run gave wrong data or hung
};

/// One subcommand: its parser, what it does, and the examples that its help ends with.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
  std::string examples;
};

/// The whole command line. Knows the words that options take, for completion scripts.
struct CommandLine {
  CLI::App app;
  std::deque<Command> commands;
  /// Words that an option or argument may have; no entry and no flag: a file.
  std::map<const CLI::Option*, std::vector<std::string>> words;
  /// Options whose value is neither a word of a list nor a file.
  std::map<const CLI::Option*, bool> free_text;
  /// Options that name a file to write.
  std::vector<const CLI::Option*> outputs;

  /// Adds a subcommand; its help shows `examples`, one per line.
  Command& add(const std::string& name, const std::string& summary, const std::string& examples);
  /// The same with options, which `declare` adds to its parser; `run` gets what was given, and
  /// returns the exit code.
  template <class Options, class Run>
  void add(const std::string& name, const std::string& summary, const std::string& examples,
           void (*declare)(CommandLine&, CLI::App&, Options&), Run run) {
    Command& command = add(name, summary, examples + "\n");
    auto options = std::make_shared<Options>();
    declare(*this, *command.app, *options);
    command.run = [options, run] { return run(*options); };
  }
  /// Says that `option` takes one (or several, separated by commas) of `list`.
  CLI::Option* takes(CLI::Option* option, std::vector<std::string> list);
  /// Says that `option` names a file to write.
  CLI::Option* writes(CLI::Option* option);
  /// An error if a file to write, as it was parsed, is one of these, which the command reads.
  std::optional<Error> overwrites(const std::vector<std::string>& read) const;
  /// The same of all files that a subcommand is given.
  std::optional<Error> overwrites(const CLI::App& command) const;
  /// Says that `option` takes a value that cannot be completed.
  CLI::Option* takes_text(CLI::Option* option);
  /// Says that `option` takes a number, or a list of them; one with a fraction is positive and
  /// finite. (CLI11 alone takes what is too large for the type as the largest there is, -1 as
  /// 2^64 - 1, and "nan".)
  template <class Number>
  CLI::Option* takes_number(CLI::Option* option) {
    return takes_text(option)->check(CLI::Validator(
        [](const std::string& text) {
          Number number = {};
          const char* end = text.data() + text.size();
          const auto [after, error] = std::from_chars(text.data(), end, number);
          bool fine = error == std::errc() && after == end;
          if constexpr (std::is_floating_point_v<Number>) {
            fine = fine && number > 0 && std::isfinite(number);
          }
          return fine ? std::string() : "'" + text + "' is not a number that it takes";
        },
        ""));
  }
};

void add_compile(CommandLine& line);
void add_run(CommandLine& line);
void add_verify(CommandLine& line);
void add_watch(CommandLine& line);
void add_diff(CommandLine& line);
void add_select(CommandLine& line);
void add_library(CommandLine& line);
void add_registry(CommandLine& line);
void add_fix(CommandLine& line);
void add_fmt(CommandLine& line);
void add_import(CommandLine& line);
void add_lsp(CommandLine& line);
void add_ops(CommandLine& line);
void add_passes(CommandLine& line);
void add_env(CommandLine& line);
void add_topology(CommandLine& line);
void add_doctor(CommandLine& line);
void add_report(CommandLine& line);
void add_explain(CommandLine& line);
void add_calibrate(CommandLine& line);
void add_tune(CommandLine& line);
void add_completion(CommandLine& line);

/// What an option's value is called in help: "FILE".
std::string type_of(const CLI::Option& option);
/// Help of the whole command (`app` is the root) or of a subcommand.
std::string help_text(const CommandLine& line, const CLI::App& app);

}  // namespace mscclc
