// For tests of passes: programs from text, and op lists as text to compare with.
#pragma once

#include <catch2/catch.hpp>
#include <initializer_list>
#include <string>
#include <utility>

#include "compiler/compile.h"
#include "ir/print/print.h"
#include "ir/print/print_parts.h"
#include "ir/verify/verify.h"
#include "passes/registry.h"

namespace mscclc::testing {

/// A program of two ranks: `body` is that of both, the contract an allreduce of four chunks.
inline std::string two_ranks(std::string_view body, std::string_view more = "",
                             std::string_view contract = "allreduce(ranks: 2, chunks: 4)") {
  return "program t\ncollective " + std::string(contract) + "\n" + std::string(more) +
         "\nrank r in 0..2 {\n  buffer s[4]\n  channel up = memory(1 - r)\n" + std::string(body) +
         "\n}\n";
}

inline Program parse(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("t.mscl", text);
  std::optional<Program> program = parse_program(sources, file, {}, diagnostics);
  INFO(render_text(diagnostics, sources));
  REQUIRE(program.has_value());
  return std::move(*program);
}

/// Runs passes by name; the program must be in order after each.
inline void run(Program& program, std::initializer_list<const char*> passes) {
  PassOptions options;
  options.only.assign(passes.begin(), passes.end());
  options.verify_each = true;
  Diagnostics diagnostics;
  const bool ok = run_passes(program, options, diagnostics);
  INFO(render_text(diagnostics, {}));
  REQUIRE(ok);
}

/// Runs passes of which one must fail: its message, then its notes, a line each.
inline std::string fail(Program& program, std::initializer_list<const char*> passes) {
  PassOptions options;
  options.only.assign(passes.begin(), passes.end());
  Diagnostics diagnostics;
  REQUIRE_FALSE(run_passes(program, options, diagnostics));
  REQUIRE(diagnostics.has_errors());
  std::string text = "\n" + diagnostics.all().back().message + "\n";
  for (const Note& note : diagnostics.all().back().notes) text += note.text + "\n";
  return text;
}

/// The ops of a rank, a line each: "0: sync", "0~ sync" in a pipeline, "0..2: sync" of a group.
inline std::string listing(const Program& program, uint32_t rank) {
  std::string text = "\n";
  OpPrinter printer(program);  // counts chunks, as IR text does
  printer.begin_rank(rank, false);
  for (const Op& op : program.ranks[rank].ops) {
    if (op.block != kNone) text += std::to_string(op.block);
    if (op.group != kNone) text += "group";
    if (op.block == kNone && op.group == kNone) text += "-";
    text += op.loop == kNone ? ": " : "~ ";
    TextWriter out(64);
    printer.print(out, op);
    text += out.take() + "\n";
  }
  return text;
}

/// What passes make of the program: the listing of rank 0.
inline std::string after(std::initializer_list<const char*> passes, const std::string& text) {
  Program program = parse(text);
  run(program, passes);
  return listing(program, 0);
}

}  // namespace mscclc::testing
