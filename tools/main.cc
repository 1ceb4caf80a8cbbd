// The mscclc command: parses the command line, hands over to a subcommand, turns every outcome into
// an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/environment/environment.h"
#include "tools/commands/programs/kernels.h"
#include "tools/commands/programs/mscclpp.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"

namespace {

using namespace std::string_literals;

constexpr const char* kFooter =
    "exit codes:\n"
    "  0  fine\n"
    "  1  the program or plan is wrong\n"
    "  2  the command line is wrong, or a file cannot be read or written\n"
    "  3  the run gave wrong data or hung\n"
    "\n"
    "examples:\n"
    "  mscclc compile plans/allreduce_2shot.mscl -D R=8 -o allreduce.json\n"
    "  mscclc run plans/allreduce_2shot.mscl --bytes 1K:1M:4\n"
    "  mscclc help COMMAND\n";

int usage_error(const CLI::App& app, const std::string& message) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  const std::string name = at == &app ? "mscclc"s : "mscclc " + at->get_name();
  mscclc::put_error(fmt::format("{}: {}\ntry '{} --help'\n", name, message, name));
  return mscclc::kUsage;
}

/// "-R 8" instead of "-D R=8": parameters of programs have capital letters.
std::string parameter_remedy(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.size() < 2 || word[0] != '-' || word[1] < 'A' || word[1] > 'Z') continue;
    if (word.starts_with("-D")) continue;
    const std::string name(word.substr(1, word.find_first_of("=0123456789") - 1));
    std::string value(word.substr(std::min(1 + name.size(), word.size())));
    if (value.starts_with('=')) value.erase(0, 1);
    if (value.empty() && i + 1 < argc && argv[i + 1][0] != '-') value = argv[i + 1];
    return fmt::format("; a parameter of the program is set by -D {}={}", name,
                       value.empty() ? "..." : value);
  }
  return "";
}

// CLI11's texts are fine, except for one: "--emit: 1 required KIND:{plan,ir} missing".
std::string text_of(const CLI::ParseError& e, int argc, char** argv) {
  const std::string text = e.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) {
    return text + parameter_remedy(argc, argv);
  }
  const size_t at = text.find(": 1 required ");
  return at == std::string::npos ? text : text.substr(0, at) + " needs a value";
}

/// "unknown command 'complie'; did you mean 'compile'?", where the first word is no command.
std::optional<mscclc::Error> unknown_command(const mscclc::CommandLine& line, int argc,
                                             char** argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  std::vector<std::string_view> names;
  for (const mscclc::Command& command : line.commands) {
    if (command.app->get_name() == argv[1]) return std::nullopt;
    names.push_back(command.app->get_name());
  }
  const std::string near = mscclc::nearest(argv[1], names);
  return mscclc::Error{fmt::format("unknown command '{}'", argv[1]),
                       near.empty() ? "" : fmt::format("did you mean '{}'?", near)};
}

/// Commands that read programs have warned of variables that nothing reads among their diagnostics.
void warn_of_environment() {
  mscclc::Diagnostics diagnostics;
  mscclc::warn_of_unknown_once(mscclc::Environment::of_process(), diagnostics);
  mscclc::put_error(mscclc::render_text(diagnostics, {}));
}

/// `help COMMAND` is `COMMAND --help`, and `help` alone `--help`. What git appends to `diff --git`
/// is never an option, though a path may begin with '-'. The words live in `words`.
std::vector<char*> plain_words(int argc, char** argv, std::vector<std::string>& words) {
  words.assign(argv, argv + argc);
  if (argc >= 2 && words[1] == "help") {
    words.erase(words.begin() + 1);
    words.insert(words.begin() + std::min<std::ptrdiff_t>(2, std::ssize(words)), "--help");
  }
  const auto git = std::ranges::find(words, "--git");
  if (argc >= 2 && words[1] == "diff" && words.end() - git > 1) {
    std::for_each(git + 1, words.end(), [](std::string& word) { word.insert(0, "--git="); });
    words.erase(git);
  }
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  return out;
}

/// "--ban ''": what is asked for by an empty text would not be done, and nothing said of it.
std::optional<std::string> empty_value(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    if (!takes_value || std::ranges::count(option->results(), "") == 0) continue;
    const bool positional = option->get_positional();
    return (positional ? mscclc::type_of(*option) : option->get_name()) + " is empty";
  }
  return std::nullopt;
}

int run(mscclc::CommandLine& line, int argc, char** argv) {
  if (const auto error = unknown_command(line, argc, argv)) {
    return usage_error(line.app, error->text());
  }
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* at = &line.app;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    mscclc::put(mscclc::help_text(line, *at));
    return mscclc::kFine;
  } catch (const CLI::CallForVersion&) {
    mscclc::put(fmt::format("mscclc {}\n", mscclc::kVersion));
    return mscclc::kFine;
  } catch (const CLI::ParseError& e) {
    return usage_error(line.app, text_of(e, argc, argv));
  }
  for (const mscclc::Command& command : line.commands) {
    if (!command.app->parsed()) continue;
    if (const auto empty = empty_value(*command.app)) return usage_error(line.app, *empty);
    if (const auto error = line.overwrites(*command.app)) {
      return usage_error(line.app, error->text());
    }
    const int code = command.run();
    warn_of_environment();
    return code;
  }
  return usage_error(line.app, "which command?");
}

}  // namespace

int main(int argc, char** argv) {
  mscclc::protect_standard_streams();
  mscclc::survive_large_writes();
  mscclc::CommandLine line;
  line.app.name("mscclc");
  line.app.description("mscclc: a compiler for GPU collectives");
  line.app.footer(kFooter);
  line.app.set_help_flag("-h,--help", "show this help");
  line.app.set_version_flag("--version", mscclc::kVersion, "show the version");
  mscclc::add_compile(line);
  mscclc::add_run(line);
  mscclc::add_verify(line);
  mscclc::add_watch(line);
  mscclc::add_diff(line);
  mscclc::add_explain(line);
  mscclc::add_calibrate(line);
  mscclc::add_tune(line);
  mscclc::add_select(line);
  mscclc::add_library_with_kernels(line);
  mscclc::add_registry(line);
  mscclc::add_fix(line);
  mscclc::add_fmt(line);
  mscclc::add_import(line);
  mscclc::add_lsp(line);
  mscclc::add_mscclpp(line);
  mscclc::add_ops(line);
  mscclc::add_passes(line);
  mscclc::add_env(line);
  mscclc::add_topology(line);
  mscclc::add_doctor(line);
  mscclc::add_report(line);
  mscclc::add_completion(line);
  int code = mscclc::kUsage;
  try {
    std::vector<std::string> words;
    std::vector<char*> arguments = plain_words(argc, argv, words);
    if (mscclc::is_for_python(words)) return mscclc::run_mscclpp(words);
    code = run(line, static_cast<int>(arguments.size()), arguments.data());
  } catch (const std::bad_alloc&) {
    mscclc::put_error("mscclc: out of memory\n");
    return mscclc::kUsage;
  }
  return mscclc::flush_output() ? code : mscclc::kUsage;
}
