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
#include "tools/base/files.h"
#include "tools/cubin/cubin_compiler.h"

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
  const auto read = read_regular_file(said);
  const std::string text = read ? *read : read.error().text();
  return Error{fmt::format("'{}' failed: {}", words[0], text.empty() ? "it says nothing" : text)};
}

class Nvcc final : public CubinCompiler {
 public:
  explicit Nvcc(std::string path) : path_(std::move(path)) {}
  Result<std::string> compile(const std::string& source,
                              const std::string& architecture) const override {
    const TemporaryFolder folder;
    const std::string input = folder.file("kernels.cu"), made = folder.file("kernels.cubin");
    if (input.empty()) {
      return Error{fmt::format("cannot make a temporary folder: {}", std::strerror(errno))};
    }
    auto done = write_file(input, source);
    if (done) done = write_file(folder.file(kKernelHeader), kernel_header());
    if (done) {
      done = run_program({path_, "-std=c++20", "-O3", "--expt-relaxed-constexpr",
                          "-arch=" + architecture, "-cubin", "-o", made, input},
                         folder.file("said"));
    }
    if (!done) return done.error();
    return read_regular_file(made);
  }

 private:
  const std::string path_;
};

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
    if (is_program(folder + "/nvcc")) return std::make_unique<Nvcc>(folder + "/nvcc");
  }
  return nullptr;
}

}  // namespace mscclc
