// mscclc passes: prints the pass registry in the order in which the compiler runs it.
#include <fmt/format.h>

#include "passes/registry.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"

namespace mscclc {

void add_passes(CommandLine& line) {
  Command& command =
      line.add("passes", "show the compiler's passes, in order", "  mscclc passes\n");
  command.run = [] {
    for (const PassInfo& pass : passes()) put(fmt::format("{:<18}{}\n", pass.name, pass.summary));
    return kFine;
  };
}

}  // namespace mscclc
