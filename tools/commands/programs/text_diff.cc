#include "tools/commands/programs/text_diff.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "tools/io/files.h"
#include "tools/io/input.h"

namespace mscclc {

int text_diff(const std::string& name_a, const std::string& a, const std::string& name_b,
              const std::string& b) {
  std::vector<std::string> words{"diff", "-u", "--label", name_a, "--label", name_b, "--", a, b};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (!flush_output()) return kUsage;
  ::pid_t child = 0;
  const int wrong = ::posix_spawnp(&child, "diff", nullptr, nullptr, arguments.data(), ::environ);
  if (wrong != 0) return Input::usage(std::string("cannot run diff: ") + std::strerror(wrong));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // A reader that wants no more ends it by a signal.
  const bool failed = WIFEXITED(status) && WEXITSTATUS(status) > 1;
  return failed ? kUsage : kFine;
}

}  // namespace mscclc
