#include "tools/commands/programs/mscclpp.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "tools/io/files.h"

namespace mscclc {
namespace {

constexpr const char* kMscclppExamples = R"(  mscclc mscclpp allgather.py -o allgather.json
  mscclc mscclpp --emit=plan allgather.py --num_gpus 8 -o ours.json)";

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libmscclc.so.0";
/// Python's own words for a package that is missing would say nothing of a remedy.
constexpr const char* kStart =
    "import sys\n"
    "try:\n"
    "    from mscclc.__main__ import main\n"
    "except ModuleNotFoundError as error:\n"
    "    if (error.name or '').split('.')[0] != 'mscclc': raise\n"
    "    sys.stderr.write('mscclc mscclpp: Python finds no package mscclc: install the wheel, or "
    "put"
    " the folder python of a checkout into PYTHONPATH\\n')\n"
    "    sys.exit(2)\n"
    "sys.exit(main())\n";

/// What lies beside the command.
struct Package {
  fs::path packages;  ///< the folder with the package 'mscclc'
  fs::path library;   ///< the folder of libmscclc, if the package does not have it itself
};

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

/// The package of a command that lies in `folder`, by the layouts that there are. Names are looked
/// at, too: what lies beside a folder need not be its owner's.
std::optional<Package> package_beside(const fs::path& folder) {
  const fs::path up = folder.parent_path(), beside = up.parent_path();
  // Installed, as bin/mscclc.
  Package found{up / "share/mscclc/python", up / "lib"};
  // In a checkout: bazel-bin/tools/mscclc.
  if (up.filename() == "bazel-bin") found = {beside / "python", up / "runtime/doors/c"};
  // In a wheel: mscclc/bin/mscclc.
  if (up.filename() == "mscclc" && is_there(up / "__main__.py")) found = {beside, {}};
  return is_there(found.packages / "mscclc/__main__.py") ? std::optional(found) : std::nullopt;
}

/// Where this command is, as it was called: links are not followed, as bazel-bin is one.
fs::path called_by(const std::string& word) {
  std::error_code failed;
  if (word.find('/') != std::string::npos) return fs::absolute(word, failed).lexically_normal();
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const fs::path here = fs::path(rest.substr(0, end)) / word;
    if (here.is_absolute() && ::access(here.c_str(), X_OK) == 0) return here.lexically_normal();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

/// Puts a folder before those of a variable.
void prepend(const char* variable, const fs::path& folder) {
  const char* before = std::getenv(variable);
  const std::string rest = before == nullptr || *before == '\0' ? "" : fmt::format(":{}", before);
  ::setenv(variable, (folder.string() + rest).c_str(), 1);
}

/// So that Python finds the package, which finds this command and the library.
void set_environment(const std::string& called) {
  std::error_code failed;
  for (const fs::path& command : {called_by(called), fs::read_symlink("/proc/self/exe", failed)}) {
    if (command.empty()) continue;
    const auto package = package_beside(command.parent_path());
    if (!package) continue;
    prepend("PYTHONPATH", package->packages);
    prepend("PATH", command.parent_path());
    if (is_there(package->library / kLibrary)) prepend("LD_LIBRARY_PATH", package->library);
    return;
  }
}

/// Python parses them.
struct MscclppOptions {
  std::string output, emit, program;
  std::vector<std::string> arguments;
  bool no_verify = false;
};

void mscclpp_options(CommandLine& line, CLI::App& app, MscclppOptions& unused) {
  app.add_option("-o,--output", unused.output,
                 "file to write (standard output); may also come last")
      ->type_name("FILE");
  const std::vector<std::string> kinds = {"mscclpp", "plan", "ir", "summary"};
  line.takes(app.add_option("--emit", unused.emit,
                            "mscclpp (default): the plan that MSCCL++'s own language makes; plan: "
                            "ours, after our passes, with its proof; ir: IR text; summary")
                 ->type_name("KIND"),
             kinds);
  app.add_flag("--no-verify", unused.no_verify, "do not prove the plan");
  app.add_option("PROGRAM", unused.program,
                 "a program that imports mscclpp.language, which is run without MSCCL++")
      ->type_name("PROGRAM.py")
      ->required();
  app.add_option("ARGS", unused.arguments, "the program's own arguments")->type_name("ARGS");
}

}  // namespace

void add_mscclpp(CommandLine& line) {
  line.add("mscclpp", "write the plan of a program in MSCCL++'s Python language", kMscclppExamples,
           mscclpp_options, [](const MscclppOptions&) { return kUsage; });
}

bool is_for_python(const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1] != "mscclpp") return false;
  return words.size() != 3 || (words[2] != "-h" && words[2] != "--help");
}

int run_mscclpp(const std::vector<std::string>& words) {
  set_environment(words[0]);
  std::vector<std::string> arguments = {"python3", "-c", kStart};
  arguments.insert(arguments.end(), words.begin() + 1, words.end());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execvp("python3", pointers.data());
  put_error(fmt::format("mscclc mscclpp: cannot run 'python3': {}\n", std::strerror(errno)));
  return kUsage;
}

}  // namespace mscclc
