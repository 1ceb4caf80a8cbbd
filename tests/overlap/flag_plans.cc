#include "tests/overlap/flag_plans.h"

#include <cstdio>
#include <cstdlib>

#include "compiler/compile.h"
#include "ir/support/read_file.h"

namespace mscclc::testing {

std::string overlap_text(const std::string& name) {
  return read_file("plans/overlap/" + name + ".mscl").value();
}

std::string of_system_scope(std::string text) {
  const size_t at = text.find(", tiles: ");
  return text.insert(at, ", scope: system");
}

uint64_t message_for(const Program& program, uint64_t wanted) {
  if (!program.contract.even_only) return wanted;
  const uint64_t unit = uint64_t{program.contract.part_chunks()} * program.granule(Dtype::f32);
  return (wanted + unit - 1) / unit * unit;
}

bool in_place_for(const Program& program, bool wanted) {
  const Contract& contract = program.contract;
  if (contract.in_place == InPlace::yes) return true;
  return wanted && contract.in_place == InPlace::either && contract.can_alias();
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
  if (program && diagnostics.all().empty()) return *std::move(program);
  std::fputs(said_of_flags(diagnostics).c_str(), stderr);
  std::abort();
}

}  // namespace mscclc::testing
