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
//   golden_runner MSCCLC FOLDER…            compares; exit code 1 if anything differs
//   golden_runner --update MSCCLC FOLDER…   rewrites the .out files
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

constexpr rlim_t kMaxCpuSeconds = 300;

struct Step {
  std::string command;
  int exit_code = 0;
};

struct Runner {
  fs::path scratch;
  bool update = false;
  int passed = 0, failed = 0, updated = 0;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

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

void redirect(int fd, const fs::path& path, int flags) {
  const int file = open(path.c_str(), flags, 0666);
  if (file < 0 || dup2(file, fd) < 0) _exit(126);
}

// Runs `command` in `folder` with its output in files out and err; returns its exit code, or
// 128 + the signal that ended it.
int run_shell(const std::string& command, const fs::path& folder, const fs::path& out,
              const fs::path& err) {
  const pid_t child = fork();
  if (child == 0) {
    redirect(0, "/dev/null", O_RDONLY);
    redirect(1, out, O_WRONLY | O_CREAT | O_TRUNC);
    redirect(2, err, O_WRONLY | O_CREAT | O_TRUNC);
    const rlimit limit{kMaxCpuSeconds, kMaxCpuSeconds};
    setrlimit(RLIMIT_CPU, &limit);
    if (chdir(folder.c_str()) != 0) _exit(126);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
    output += read(out) + read(err);
    if (code == step.exit_code) continue;
    fmt::print("{}: '{}' exits with {}, expected {}\n{}{}", path.string(), step.command, code,
               step.exit_code, read(out), read(err));
    return false;
  }
  // Scratch paths differ from machine to machine.
  output = replaced(output, runner.scratch.string() + "/", "%t/");
  return true;
}

void show_difference(const Runner& runner, const fs::path& expected, const std::string& actual) {
  const fs::path got = runner.scratch / "actual";
  write(got, actual);
  fmt::print("{} differs from what is printed now:\n", expected.string());
  std::fflush(stdout);
  // Plans have lines of many kilobytes.
  const std::string command =
      fmt::format("diff -u '{}' '{}' | cut -c1-240 | head -n 40", expected.string(), got.string());
  if (std::system(command.c_str()) == -1) fmt::print("(no diff: cannot run a shell)\n");
}

bool run_case(Runner& runner, const fs::path& path) {
  std::string actual;
  if (!output_of(runner, path, actual)) return false;
  const fs::path expected = fs::path(path).replace_extension(".out");
  const bool exists = fs::exists(expected);
  if (exists && read(expected) == actual) return true;
  if (runner.update) {
    write(expected, actual);
    fmt::print("wrote {}\n", expected.string());
    ++runner.updated;
    return true;
  }
  if (!exists) {
    fmt::print("{} is missing; 'bazel run //tests:update_golden' writes it\n", expected.string());
    return false;
  }
  show_difference(runner, expected, actual);
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

fs::path scratch_folder() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string pattern =
      (base != nullptr ? base : fs::temp_directory_path().string()) + "/golden_XXXXXX";
  return mkdtemp(pattern.data()) == nullptr ? fs::path() : fs::path(pattern);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  Runner runner;
  runner.update = !arguments.empty() && arguments[0] == "--update";
  if (runner.update) arguments.erase(arguments.begin());
  if (arguments.size() < 2) {
    fmt::print(stderr, "usage: golden_runner [--update] MSCCLC FOLDER...\n");
    return 2;
  }
  const std::string tools = fs::absolute(arguments[0]).parent_path().string();
  setenv("PATH", (tools + ":" + std::getenv("PATH")).c_str(), 1);
  setenv("LC_ALL", "C", 1);
  if (const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY")) fs::current_path(root);
  runner.scratch = scratch_folder();
  for (size_t i = 1; i < arguments.size(); ++i) run_folder(runner, arguments[i]);
  fs::remove_all(runner.scratch);
  fmt::print("golden: {} cases passed, {} failed\n", runner.passed, runner.failed);
  return runner.failed == 0 && runner.passed > 0 ? 0 : 1;
}
