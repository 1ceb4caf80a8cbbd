// mscclc env: prints the table of environment variables, or the page docs/environment.md.
#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "runtime/support/environment/environment_doc.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"

namespace mscclc {

namespace {

constexpr const char* kEnvExamples = R"(  mscclc env
  mscclc env --format=markdown > docs/environment.md)";

struct EnvOptions {
  std::string format = "text";
};

void env_options(CommandLine& line, CLI::App& app, EnvOptions& options) {
  const std::vector<std::string> formats = {"text", "markdown"};
  line.takes(app.add_option("--format", options.format,
                            "text (default), or markdown: the whole reference page")
                 ->type_name("FORMAT")
                 ->check(CLI::IsMember(formats)),
             formats);
}

int run_env(const EnvOptions& options) {
  put(options.format == "markdown" ? environment_reference()
                                   : environment_text(Environment::of_process()));
  return kFine;
}

}  // namespace

void add_env(CommandLine& line) {
  line.add("env", "show the environment variables that the runtime reads, and which are set",
           kEnvExamples, env_options, run_env);
}

}  // namespace mscclc
