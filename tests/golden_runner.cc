// Runs golden tests: commands whose whole output is written down beside them.
//
//   tests/golden/fmt/comments.mscl   # RUN: mscclc fmt %s
//   tests/golden/fmt/comments.out    what it prints: standard output, then standard error
//
// A case is a .mscl, .ir or .test file that begins with comment lines: `# RUN: COMMAND` for the
// shell, one or more, and `# EXIT: CODE` after a command that does not exit with 0. A program's
// commands run in its own folder, so that messages name it shortly; those of a .test file run at
// the repository's root. %s is the file, %t a scratch path of the case.
//
// Documents are cases, too (tests/document.h).
//
//   golden_runner MSCCLC FOLDER|FILE.md…            compares; exit code 1 if anything differs
//   golden_runner --update MSCCLC FOLDER|FILE.md…   rewrites the .out files, and what documents
//   show
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ir/support/read_file.h"
#include "tests/document.h"
#include "tests/shell.h"

namespace fs = std::filesystem;
using namespace mscclc::testing;
using mscclc::read_file;

namespace {

struct Step {
  std::string command;
  int exit_code = 0;
};

struct Runner {
  fs::path scratch;
  bool update = false;
  int passed = 0, failed = 0, updated = 0;
};

std::vector<Step> steps_of(const fs::path& path) {
  std::vector<Step> steps;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line) && line.starts_with('#');) {
    if (line.starts_with("# RUN: ")) steps.push_back({line.substr(7), 0});
    if (line.starts_with("# EXIT: ") && !steps.empty()) {
      steps.back().exit_code = std::atoi(line.c_str() + 8);
    }
  }
  return steps;
}

// What the case prints, or nothing after saying what went wrong.
bool output_of(const Runner& runner, const fs::path& path, std::string& output) {
  const std::vector<Step> steps = steps_of(path);
  if (steps.empty()) {
    fmt::print("{}: no '# RUN:' line\n", path.string());
    return false;
  }
  const bool at_root = path.extension() == ".test";
  const fs::path folder = at_root ? fs::current_path() : fs::absolute(path).parent_path();
  const std::string file = at_root ? path.string() : path.filename().string();
  const fs::path out = runner.scratch / "out", err = runner.scratch / "err";
  const std::string temporary = (runner.scratch / path.stem()).string();
  for (const Step& step : steps) {
    const std::string command = replaced(replaced(step.command, "%s", file), "%t", temporary);
    const int code = run_shell(command, folder, out, err);
    if (steps.size() > 1) output += "$ " + step.command + "\n";
    output += read_file(out).value() + read_file(err).value();
    if (code == step.exit_code) continue;
    fmt::print("{}: '{}' exits with {}, expected {}\n{}{}", path.string(), step.command, code,
               step.exit_code, read_file(out).value(), read_file(err).value());
    return false;
  }
  // Scratch paths differ from machine to machine.
  output = replaced(output, runner.scratch.string() + "/", "%t/");
  return true;
}

bool run_case(Runner& runner, const fs::path& path) {
  std::string actual;
  if (!output_of(runner, path, actual)) return false;
  const fs::path expected = fs::path(path).replace_extension(".out");
  const bool exists = fs::exists(expected);
  if (exists && read_file(expected).value() == actual) return true;
  if (runner.update) {
    write_whole(expected, actual);
    fmt::print("wrote {}\n", expected.string());
    ++runner.updated;
    return true;
  }
  if (!exists) {
    fmt::print("{} is missing; 'bazel run //tests:update_golden' writes it\n", expected.string());
    return false;
  }
  const fs::path got = runner.scratch / "actual";
  write_whole(got, actual);
  fmt::print("{} differs from what is printed now:\n", expected.string());
  show_difference(expected, got);
  return false;
}

bool is_case(const fs::path& path) {
  const fs::path kind = path.extension();
  return kind == ".test" || ((kind == ".mscl" || kind == ".ir") && !steps_of(path).empty());
}

// An expectation that no case belongs to is left over from a renamed one.
bool is_orphan(const fs::path& path) {
  if (path.extension() != ".out") return false;
  const auto has = [&](const char* kind) {
    return fs::exists(fs::path(path).replace_extension(kind));
  };
  return !has(".mscl") && !has(".ir") && !has(".test");
}

void run_folder(Runner& runner, const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    if (is_orphan(path)) {
      fmt::print("{}: there is no case of this name\n", path.string());
      ++runner.failed;
    } else if (is_case(path)) {
      ++(run_case(runner, path) ? runner.passed : runner.failed);
    }
  }
}

void run_argument(Runner& runner, const fs::path& path) {
  if (path.extension() != ".md") return run_folder(runner, path);
  const DocumentResult result = check_document(path, runner.scratch, runner.update);
  runner.passed += result.passed;
  runner.failed += result.failed;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  Runner runner;
  runner.update = !arguments.empty() && arguments[0] == "--update";
  if (runner.update) arguments.erase(arguments.begin());
  if (arguments.size() < 2) {
    fmt::print(stderr, "usage: golden_runner [--update] MSCCLC FOLDER|FILE.md...\n");
    return 2;
  }
  runner.scratch = set_up(arguments[0]);
  for (size_t i = 1; i < arguments.size(); ++i) run_argument(runner, arguments[i]);
  fs::remove_all(runner.scratch);
  fmt::print("golden: {} cases passed, {} failed\n", runner.passed, runner.failed);
  return runner.failed == 0 && runner.passed > 0 ? 0 : 1;
}
