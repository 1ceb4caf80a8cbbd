#include "tests/overlap/flag_plans.h"

#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "ir/base/read_file.h"

namespace mscclc::testing {

std::string overlap_text(const std::string& name) {
  return read_file("plans/overlap/" + name + ".mscl").value();
}

std::string said_of_flags(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.all()) {
    text += d.code + ": " + d.message + "\n";
    for (const Note& note : d.notes) text += "- " + note.text + "\n";
  }
  return text;
}

std::optional<Program> flag_plan(const std::string& text, const FlagDefines& defines,
                                 Diagnostics& diagnostics) {
  Sources sources;
  FrontEndOptions options;
  options.defines = defines;
  options.read_file = [](const std::string& path) { return read_file(path); };
  return compile(sources, sources.add("a.mscl", text), options, {}, diagnostics);
}

Program flag_plan(const std::string& text, const FlagDefines& defines) {
  Diagnostics diagnostics;
  std::optional<Program> program = flag_plan(text, defines, diagnostics);
  INFO(said_of_flags(diagnostics));
  REQUIRE(program.has_value());
  CHECK(diagnostics.all().empty());
  return *std::move(program);
}

}  // namespace mscclc::testing
