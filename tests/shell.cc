#include "tests/shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace mscclc::testing {

namespace fs = std::filesystem;

namespace {

constexpr rlim_t kMaxCpuSeconds = 300;

void redirect(int fd, const fs::path& path, int flags) {
  const int file = open(path.c_str(), flags, 0666);
  if (file < 0 || dup2(file, fd) < 0) _exit(126);
}

fs::path scratch_folder() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string pattern =
      (base != nullptr ? base : fs::temp_directory_path().string()) + "/golden_XXXXXX";
  return mkdtemp(pattern.data()) == nullptr ? fs::path() : fs::path(pattern);
}

}  // namespace

void write_whole(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

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

void show_difference(const fs::path& expected, const fs::path& actual) {
  std::fflush(stdout);
  // Plans have lines of many kilobytes.
  const std::string command = fmt::format("diff -u '{}' '{}' | cut -c1-240 | head -n 40",
                                          expected.string(), actual.string());
  if (std::system(command.c_str()) == -1) fmt::print("(no diff: cannot run a shell)\n");
}

fs::path set_up(const std::string& mscclc) {
  const std::string tools = fs::absolute(mscclc).parent_path().string();
  setenv("PATH", (tools + ":" + std::getenv("PATH")).c_str(), 1);
  setenv("LC_ALL", "C", 1);
  // Plans that an earlier build has proved are not known here.
  const fs::path folder = scratch_folder();
  setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  if (const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY")) fs::current_path(root);
  return folder;
}

}  // namespace mscclc::testing
