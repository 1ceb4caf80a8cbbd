// mscclc mscclpp is Python's: its command line is declared here, for help, completion and man
// pages, and Python runs it.
#pragma once

#include <string>
#include <vector>

#include "tools/io/command_line.h"

namespace mscclc {

/// Declares the command, which run_mscclpp() runs.
void add_mscclpp(CommandLine& line);
/// Whether a command line, "mscclc" and its arguments, is for Python: all of `mscclpp` but its
/// help.
bool is_for_python(const std::vector<std::string>& words);
/// Becomes the interpreter, with the package 'mscclc' that lies beside this command: in a wheel, an
/// installed package or a checkout; else with one that the interpreter finds. Comes back with an
/// exit code only if there is no interpreter.
int run_mscclpp(const std::vector<std::string>& words);

}  // namespace mscclc
