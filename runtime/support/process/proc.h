// What /proc says of a process. Of one that has ended meanwhile it says nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mscclc {

struct ProcessFacts {
  char state = '?';  ///< as ps(1) shows it: 'R', 'S', 'T' (stopped), 'Z' (ended, not waited for) …
  int32_t parent = 0;
  uint64_t began = 0;  ///< in ticks since the machine started
};

/// nullopt: there is no such process, or it cannot be seen. From any thread.
[[nodiscard]] std::optional<ProcessFacts> facts_of(int32_t process);
/// ProcessFacts::began; 0: it cannot be seen.
[[nodiscard]] uint64_t began_of(int32_t process);
/// The present time in the unit of ProcessFacts::began.
[[nodiscard]] uint64_t ticks_now();
/// The processes of this process's user. Empty: /proc cannot be read.
[[nodiscard]] std::vector<int32_t> own_processes();
/// Entries of /proc/PROCESS/WHAT that end in a zero byte: "environ" as it was when the program
/// began, "cmdline". Empty: they cannot be read.
[[nodiscard]] std::vector<std::string> entries_of(int32_t process, const char* what);
/// The program file that it runs; "": it cannot be read.
[[nodiscard]] std::string program_of(int32_t process);

}  // namespace mscclc
