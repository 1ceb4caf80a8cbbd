#include "compiler/testing/text_cases.h"

#include <map>
#include <sstream>

#include "ir/print/print.h"
#include "ir/support/read_file.h"

namespace mscclc {

int each_case(const std::string& path, const std::function<void(const TextCase&)>& check) {
  std::istringstream in(read_file(path).value());
  TextCase c;
  bool in_text = false;
  int cases = 0;
  const auto finish = [&] {
    if (!c.name.empty()) check(c);
  };
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("=== ")) {
      finish();
      c = {line.substr(4), "", ""};
      in_text = true;
      ++cases;
    } else if (in_text && line == "---") {
      in_text = false;
    } else {
      (in_text ? c.text : c.expected) += line + '\n';
    }
  }
  finish();
  return cases;
}

std::string outcome(const std::string& text) {
  std::map<std::string, std::string> files;
  std::string file = "a.mscl";
  bool wants_ir = false;
  FrontEndOptions options;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#file ")) {
      file = line.substr(6);
      continue;
    }
    if (line.starts_with("#-D ")) {
      const size_t equals = line.find('=');
      options.defines.emplace_back(line.substr(4, equals - 4), line.substr(equals + 1));
    }
    if (line.starts_with("#max ")) options.max_ops = std::stoull(line.substr(5));
    wants_ir = wants_ir || line == "#ir";
    files[file] += line + '\n';
  }
  options.read_file = [&](const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
  Sources sources;
  Diagnostics diagnostics;
  const FileId main = sources.add("a.mscl", files["a.mscl"]);
  const auto program = parse_program(sources, main, options, diagnostics);
  std::string out = render_text(diagnostics, sources, 1000);
  if (program.has_value() == diagnostics.has_errors()) out += "a program and errors\n";
  if (program && wants_ir) out += print_ir(*program);
  return out;
}

}  // namespace mscclc
