// Puts a header and all headers of ours that it includes into one text, each once, tables (.def)
// wherever they are included, and what serves the host alone nowhere:
//
//   amalgamate ROOT TEXT DIGEST
//
// TEXT becomes a C++ string literal, DIGEST a header with the text's digest, which also stands in
// the names of kernels that are compiled with it (MSCCLC_KERNEL).
#include <fstream>
#include <iostream>
#include <set>
#include <string>

#include "ir/support/fnv.h"

namespace {

/// The file that a line includes by quotes; "": none.
std::string included(const std::string& line) {
  constexpr const char* kInclude = "#include \"";
  const size_t from = line.find(kInclude);
  if (from != 0) return "";
  const size_t begin = std::string(kInclude).size();
  return line.substr(begin, line.find('"', begin) - begin);
}

/// Device code that is compiled for the host includes twins of its accesses, which no compiler of
/// kernels sees (executor/cuda/device/access.cuh).
bool is_for_host(const std::string& path) { return path.rfind("executor/cuda/host/", 0) == 0; }

struct Amalgam {
  std::string text;
  std::set<std::string> seen;  ///< files
};

/// Appends a file; false: it cannot be read.
bool add(const std::string& path, Amalgam& to) {
  const bool table = path.size() > 4 && path.compare(path.size() - 4, 4, ".def") == 0;
  if (!table && !to.seen.insert(path).second) return true;
  std::ifstream file(path);
  if (!file) {
    std::cerr << "amalgamate: cannot read '" << path << "'\n";
    return false;
  }
  for (std::string line; std::getline(file, line);) {
    if (line == "#pragma once") continue;
    const std::string other = included(line);
    if (other.empty()) {
      to.text += line + "\n";
    } else if (!is_for_host(other) && !add(other, to)) {
      return false;
    }
  }
  return true;
}

std::string digest(const std::string& text) {
  mscclc::Fnv hash;
  hash.add(text);
  return hash.hex();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: amalgamate ROOT TEXT DIGEST\n";
    return 2;
  }
  Amalgam made{
      "// The machine of kernels that are compiled for one plan: made of headers of mscclc.\n"
      "#pragma once\n",
      {}};
  if (!add(argv[1], made)) return 1;
  const std::string name = digest(made.text);
  made.text +=
      "\n/// The name of a kernel: with this machine it is another than with any other.\n"
      "#define MSCCLC_KERNEL(plan, shape, arithmetic) \\\n"
      "  mscclc_##plan##_##shape##_##arithmetic##_" +
      name + "\n";
  std::ofstream(argv[2]) << "R\"cuh(" << made.text << ")cuh\"\n";
  std::ofstream(argv[3]) << "// Of the text of kernel_header().\n#pragma once\n\n"
                            "namespace mscclc {\n"
                            "inline constexpr const char* kKernelHeaderDigest = \""
                         << name << "\";\n}  // namespace mscclc\n";
  return 0;
}
