// 'mscclc watch' runs while files are written, replaced and removed, and ends on a signal.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "ir/support/read_file.h"

using namespace mscclc;
namespace fs = std::filesystem;

namespace {

/// The command over a file of its own; its standard output and error come over one pipe.
class Watcher {
 public:
  explicit Watcher(const std::string& program) {
    folder_ = fs::temp_directory_path() / ("watch_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    write(program);
    const std::string file = folder_ / "a.mscl", command = fs::absolute("tools/mscclc");
    std::array<int, 2> out;
    REQUIRE(::pipe(out.data()) == 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(out[1], STDERR_FILENO);
      ::close(out[0]);
      ::execl(command.c_str(), command.c_str(), "watch", file.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(out[1]);
    from_ = out[0];
  }
  ~Watcher() {
    if (child_ > 0) end(SIGKILL);
    ::close(from_);
    fs::remove_all(folder_);
  }

  void write(const std::string& program) const { std::ofstream(folder_ / "a.mscl") << program; }
  /// As editors do it that keep the old file until the new one is whole.
  void replace(const std::string& program) const {
    std::ofstream(folder_ / "new") << program;
    fs::rename(folder_ / "new", folder_ / "a.mscl");
  }
  void remove() const { fs::remove(folder_ / "a.mscl"); }
  /// At once: of a file that is gone for a second it is said that there is none, and no more.
  void replace_by_pipe() const {
    REQUIRE(::mkfifo((folder_ / "new").c_str(), 0600) == 0);
    fs::rename(folder_ / "new", folder_ / "a.mscl");
  }
  void import_text(const std::string& text) const { std::ofstream(folder_ / "lib.mscl") << text; }
  /// Reads lines until one has the text; that line.
  std::string wait_for(const std::string& text) {
    for (;;) {
      const size_t newline = bytes_.find('\n');
      if (newline != std::string::npos) {
        const std::string line = bytes_.substr(0, newline);
        bytes_.erase(0, newline + 1);
        if (line.find(text) != std::string::npos) return line;
        continue;
      }
      std::array<char, 4096> buffer;
      const ssize_t count = ::read(from_, buffer.data(), buffer.size());
      if (count <= 0) return "";
      bytes_.append(buffer.data(), static_cast<size_t>(count));
    }
  }
  /// The exit code, or 128 + the signal.
  int end(int signal) {
    ::kill(child_, signal);
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  fs::path folder_;
  pid_t child_ = -1;
  int from_ = -1;
  std::string bytes_;
};

std::string library(const std::string& name) { return read_file("plans/" + name).value(); }

}  // namespace

TEST_CASE("watch: what is written is compiled, proved and run, and a signal ends it") {
  Watcher watcher(library("allreduce_1shot.mscl"));
  CHECK(watcher.wait_for("a.mscl: ").find("proved, right on 8 ranks") != std::string::npos);
  watcher.write("collective allgather(ranks: 2)\nrank r in 0..2 { copy output <- x }\n");
  CHECK(!watcher.wait_for("a.mscl: refused").empty());
  watcher.write(library("allgather_direct.mscl"));
  CHECK(!watcher.wait_for("proved, right on 8 ranks").empty());
  CHECK(watcher.end(SIGINT) == 0);
}

TEST_CASE("watch: files that are replaced, or gone for a while, are followed") {
  Watcher watcher(library("allreduce_1shot.mscl"));
  CHECK(!watcher.wait_for("proved").empty());
  watcher.replace("x\n");
  CHECK(!watcher.wait_for("refused").empty());
  watcher.replace(library("allgather_ring.mscl"));
  CHECK(!watcher.wait_for("proved").empty());
  watcher.remove();
  CHECK(!watcher.wait_for("No such file or directory; waiting for it").empty());
  watcher.write(library("allgather_direct.mscl"));
  CHECK(!watcher.wait_for("proved").empty());
  watcher.replace_by_pipe();
  CHECK(!watcher.wait_for("it is a pipe or a device, not a file; waiting for it").empty());
  CHECK(watcher.end(SIGTERM) == 0);
}

TEST_CASE("watch: imported files are watched, too") {
  const std::string program =
      "import \"lib.mscl\"\nrequire n == 1, \"one\"\ncollective allgather(ranks: 1)\n"
      "rank 0 { copy output[0] <- input }\n";
  Watcher watcher("x\n");
  CHECK(!watcher.wait_for("refused").empty());
  watcher.import_text("let n = 1\n");
  watcher.write(program);
  CHECK(!watcher.wait_for("proved").empty());
  watcher.import_text("let n = 22\n");
  CHECK(!watcher.wait_for("refused").empty());
  CHECK(watcher.end(SIGINT) == 0);
}
