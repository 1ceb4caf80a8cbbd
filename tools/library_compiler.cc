// The `mscclc library` command alone: what builds call, whose runtime is not there yet.
#include <CLI/CLI.hpp>

#include "tools/io/command_line.h"
#include "tools/io/files.h"

int main(int argc, char** argv) {
  mscclc::CommandLine line;
  mscclc::add_library(line);
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    mscclc::put_error(std::string("library_compiler: ") + e.what() + "\n");
    return mscclc::kUsage;
  }
  const mscclc::Command& library = line.commands.front();
  return library.app->parsed() ? library.run() : mscclc::kUsage;
}
