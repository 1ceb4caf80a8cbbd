// mscclc env: prints the table of environment variables, or the page docs/environment.md.
#include <CLI/App.hpp>
#include <memory>

#include "runtime/support/environment/environment_doc.h"
#include "tools/base/command_line.h"
#include "tools/base/files.h"

namespace mscclc {

void add_env(CommandLine& line) {
  Command& command =
      line.add("env", "show the environment variables that the runtime reads, and which are set",
               "  mscclc env\n"
               "  mscclc env --format=markdown > docs/environment.md\n");
  auto format = std::make_shared<std::string>("text");
  const std::vector<std::string> formats = {"text", "markdown"};
  line.takes(
      command.app
          ->add_option("--format", *format, "text (default), or markdown: the whole reference page")
          ->type_name("FORMAT")
          ->check(CLI::IsMember(formats)),
      formats);
  command.run = [format] {
    put(*format == "markdown" ? environment_reference()
                              : environment_text(Environment::of_process()));
    return kFine;
  };
}

}  // namespace mscclc
