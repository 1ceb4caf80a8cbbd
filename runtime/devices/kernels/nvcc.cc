// nvcc as a process, in a temporary folder.

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "executor/compiled/emit.h"
#include "ir/support/read_file.h"
#include "runtime/devices/kernels/cubin_compiler.h"
#include "runtime/support/observe/new_file.h"

extern char** environ;

namespace mscclc {
namespace {

/// A folder for files of one compilation, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code none;
    const auto base = std::filesystem::temp_directory_path(none);
    std::string name = (none ? std::filesystem::path("/tmp") : base) / "mscclc-XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code none;
    if (!path_.empty()) std::filesystem::remove_all(path_, none);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  /// A file in it; "": there is no folder.
  std::string file(const char* name) const { return path_.empty() ? "" : path_ + "/" + name; }

 private:
  std::string path_;
};

bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

Result<void> put_file(const std::string& name, std::string_view text) {
  if (write_new_file(name, text)) return {};
  return Error{fmt::format("cannot write '{}': {}", name, std::strerror(errno))};
}

Result<std::string> take_file(const std::string& name) {
  auto text = read_file(name, std::nullopt);
  if (!text) return Error{fmt::format("cannot read '{}': {}", name, file_error(errno))};
  return *std::move(text);
}

/// Runs a program with its output in a file.
Result<void> run_program(const std::vector<std::string>& words, const std::string& said) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, said.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, words[0].c_str(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    return Error{fmt::format("cannot run '{}': {}", words[0], std::strerror(failed))};
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const auto read = take_file(said);
  const std::string text = read ? *read : read.error().text();
  return Error{fmt::format("'{}' failed: {}", words[0], text.empty() ? "it says nothing" : text)};
}

class Nvcc final : public CubinCompiler {
 public:
  Nvcc(std::string path, std::string version)
      : path_(std::move(path)), version_(std::move(version)) {}
  const std::string& version() const override { return version_; }
  const std::string& file() const override { return path_; }
  Result<std::string> compile(const std::string& source,
                              const std::string& architecture) const override {
    const TemporaryFolder folder;
    const std::string input = folder.file("kernels.cu"), made = folder.file("kernels.cubin");
    if (input.empty()) {
      return Error{fmt::format("cannot make a temporary folder: {}", std::strerror(errno))};
    }
    auto done = put_file(input, source);
    if (done) done = put_file(folder.file(kKernelHeader), kernel_header());
    if (done) {
      done = run_program({path_, "-std=c++20", "-O3", "--expt-relaxed-constexpr",
                          "-arch=" + architecture, "-cubin", "-o", made, input},
                         folder.file("said"));
    }
    if (!done) return done.error();
    return take_file(made);
  }

 private:
  const std::string path_, version_;
};

/// The last line that says something: "Build cuda_12.8.r12.8/compiler.35583870_0".
std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

/// What it says of its version, and nothing where it says none.
std::unique_ptr<CubinCompiler> open_nvcc(const std::string& path) {
  const TemporaryFolder folder;
  const std::string said = folder.file("said");
  std::string version = "nvcc";
  if (!said.empty() && run_program({path, "--version"}, said)) {
    if (const auto text = take_file(said)) version += " " + last_line(*text);
  }
  return std::make_unique<Nvcc>(path, std::move(version));
}

}  // namespace

std::unique_ptr<CubinCompiler> find_nvcc() {
  std::vector<std::string> folders;
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0') {
    folders.push_back(std::string(home) + "/bin");
  }
  const char* const path = std::getenv("PATH");
  for (std::string rest = path == nullptr ? "" : path; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders) {
    if (is_program(folder + "/nvcc")) return open_nvcc(folder + "/nvcc");
  }
  return nullptr;
}

}  // namespace mscclc
