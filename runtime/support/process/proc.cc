#include "runtime/support/process/proc.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <climits>
#include <cstdio>
#include <ctime>
#include <memory>

#include "ir/support/read_file.h"

namespace mscclc {
namespace {

std::string path_of(int32_t process, const char* what) {
  return fmt::format("/proc/{}/{}", process, what);
}

}  // namespace

std::optional<ProcessFacts> facts_of(int32_t process) {
  const std::string text = read_file(path_of(process, "stat")).value_or("");
  // The name of the program, which may hold anything, ends at the last bracket.
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  ProcessFacts facts;
  unsigned long long began = 0;
  const int got =
      std::sscanf(text.c_str() + end + 1,
                  " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                  "%*d %llu",
                  &facts.state, &facts.parent, &began);
  if (got != 3) return std::nullopt;
  facts.began = began;
  return facts;
}

uint64_t began_of(int32_t process) {
  const auto facts = facts_of(process);
  return facts ? facts->began : 0;
}

uint64_t ticks_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto rate = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<uint64_t>(now.tv_sec) * rate +
         static_cast<uint64_t>(now.tv_nsec) * rate / 1'000'000'000;
}

std::vector<int32_t> own_processes() {
  std::vector<int32_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    int32_t process = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
    struct stat status {};
    if (error == std::errc() && end == name.data() + name.size() &&
        ::stat(("/proc/" + name).c_str(), &status) == 0 && status.st_uid == ::geteuid()) {
      found.push_back(process);
    }
  }
  return found;
}

std::vector<std::string> entries_of(int32_t process, const char* what) {
  std::vector<std::string> entries;
  const std::string text = read_file(path_of(process, what)).value_or("");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    entries.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return entries;
}

std::string program_of(int32_t process) {
  char path[PATH_MAX];
  const ssize_t length = ::readlink(path_of(process, "exe").c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "";
}

}  // namespace mscclc
