// What programs unroll to (testdata/unroll.txt), IR text as input (testdata/ir_text.txt), and that
// the library's programs survive the way to IR text and back, before and after the passes.
#include "compiler/unroll/unroll.h"

#include <catch2/catch.hpp>

#include "compiler/testing/text_cases.h"
#include "ir/print/print.h"
#include "ir/support/read_file.h"
#include "ir/verify/verify.h"

using namespace mscclc;

namespace {

std::optional<Program> parse(const std::string& name, const std::string& text,
                             const FrontEndOptions& options = {}) {
  Sources sources;
  Diagnostics diagnostics;
  auto program = parse_program(sources, sources.add(name, text), options, diagnostics);
  INFO(name << "\n" << render_text(diagnostics, sources));
  CHECK(program.has_value());
  CHECK_FALSE(diagnostics.has_errors());
  return program;
}

void check_round_trip(const Program& program) {
  Diagnostics diagnostics;
  CHECK(verify_structure(program, diagnostics));
  CHECK(render_text(diagnostics, Sources()).empty());
  const std::string text = print_ir(program);
  const auto back = parse("back.ir", text);
  REQUIRE(back);
  const bool same = print_ir(*back) == text;  // no megabytes in the report
  CHECK(same);
}

struct Case {
  std::string file;
  std::vector<std::string> parameters;  ///< one -D list each, "R=2 B=4"
};

// The parameters at which the programs must be right.
const std::vector<Case> kRuns = {
    {"plans/allreduce_1shot.mscl", {"", "R=1", "R=2", "R=3", "R=5", "B=1", "F=sentinel"}},
    {"plans/allreduce_1shot_ordered.mscl", {"", "R=2", "R=3", "R=5"}},
    {"plans/allreduce_2shot_packets.mscl", {"", "R=2", "R=4", "R=3 B=4"}},
    {"plans/allreduce_2shot.mscl", {"", "R=2", "R=4"}},
    {"plans/allreduce_allpairs.mscl", {"", "R=2", "R=3", "R=16", "B=1"}},
    {"plans/allreduce_ring.mscl", {"", "R=2", "R=3", "R=5"}},
    {"plans/allreduce_halving_doubling.mscl", {"", "R=2", "R=4", "R=16"}},
    {"plans/allreduce_switch.mscl", {"", "R=2", "R=3"}},
    {"plans/allreduce_hier.mscl",
     {"", "world=4 gpus=2", "world=6 gpus=3", "world=6 gpus=2", "world=32"}},
    {"plans/allreduce_hier_packets.mscl",
     {"", "world=4 gpus=2 T=1", "world=6 gpus=3 T=2", "world=6 gpus=2 T=1"}},
    {"plans/allgather_groups.mscl", {"", "R=3", "T=1", "T=4"}},
    {"tests/programs/allreduce_subgroups.mscl", {"", "R=4 G=2", "R=6 G=3"}},
    {"plans/alltoall_pipeline.mscl", {"", "R=2", "R=4"}},
    {"plans/alltoallv.mscl", {"", "R=3", "R=3 counts=0,2,1,0,0,0,3,1,1"}},
    {"plans/broadcast_tree.mscl", {"", "R=2 root=1", "R=3 root=2", "R=7 root=3"}},
};

FrontEndOptions defines(const std::string& list) {
  FrontEndOptions options;
  std::istringstream in(list);
  for (std::string d; in >> d;) {
    options.defines.emplace_back(d.substr(0, d.find('=')), d.substr(d.find('=') + 1));
  }
  return options;
}

}  // namespace

TEST_CASE("what programs unroll to") {
  const int cases = each_case("compiler/testdata/unroll.txt", [](const TextCase& c) {
    INFO(c.name);
    CHECK(outcome(c.text) == c.expected);
  });
  CHECK(cases > 10);
}

TEST_CASE("IR text") {
  const int cases = each_case("compiler/testdata/ir_text.txt", [](const TextCase& c) {
    INFO(c.name);
    CHECK(outcome(c.text) == c.expected);
  });
  CHECK(cases > 5);
}

TEST_CASE("programs unroll, pass the structural check and come back from text") {
  for (const Case& run : kRuns) {
    for (const std::string& parameters : run.parameters) {
      INFO(run.file << " " << parameters);
      const auto program = parse(run.file, read_file(run.file).value(), defines(parameters));
      REQUIRE(program);
      check_round_trip(*program);
    }
  }
}

TEST_CASE("programs come back from text after the passes") {
  for (const Case& run : kRuns) {
    for (const std::string& parameters : run.parameters) {
      INFO(run.file << " " << parameters);
      Sources sources;
      Diagnostics diagnostics;
      PassOptions passes;
      passes.verify_each = true;
      const FileId file = sources.add(run.file, read_file(run.file).value());
      const auto program = compile(sources, file, defines(parameters), passes, diagnostics);
      INFO(render_text(diagnostics, sources));
      REQUIRE(program);
      check_round_trip(*program);
    }
  }
}

TEST_CASE("numbers of ops as written") {
  const auto ops = [](const std::string& file, const std::string& parameters = "") {
    const auto program = parse(file, read_file(file).value(), defines(parameters));
    REQUIRE(program);
    return program->ranks[0].ops.size();
  };
  CHECK(ops("plans/allreduce_1shot.mscl") == 8 * 8);
  CHECK(ops("plans/allreduce_2shot_packets.mscl") == 8 * 22);
  CHECK(ops("plans/allreduce_2shot.mscl") == 8 + 10 + 1);
  CHECK(ops("plans/allreduce_allpairs.mscl") == 8 * 12);
  CHECK(ops("plans/allreduce_ring.mscl") == 7 * 8 - 7);
  CHECK(ops("plans/allreduce_halving_doubling.mscl") == 21);
  CHECK(ops("plans/allreduce_switch.mscl") == 11 + 4 + 10);
  CHECK(ops("plans/allreduce_hier.mscl") == 10 + 9);
  CHECK(ops("plans/alltoall_pipeline.mscl") == 7 * 2 + 7 * 3 + 7 * 3 + 7 * 2 + 1);
  CHECK(ops("plans/alltoallv.mscl") == 3 * 5 + 1);
}

TEST_CASE("the same text gives the same program") {
  const std::string text = read_file("plans/allreduce_hier.mscl").value();
  CHECK(print_ir(*parse("a.mscl", text)) == print_ir(*parse("a.mscl", text)));
}

TEST_CASE("IR text goes on with a pipeline as it was begun, and does not come back to it") {
  const auto said = [](const std::string& blocks) {
    Sources sources;
    Diagnostics diagnostics;
    const std::string text =
        "ir 1\nprogram t\ncollective allreduce(ranks: 1, chunks: 2)\n"
        "launch threads: 32, split: true\nrank 0 {\n  buffer s[1]\n" +
        blocks + "}\n";
    (void)parse_program(sources, sources.add("t.ir", text), {}, diagnostics);
    return diagnostics.all().empty() ? "" : diagnostics.all()[0].code;
  };
  const std::string copy = "copy s[0] <- input[0]", last = "copy output[1] <- input[1]";
  const std::string first = "tb 0 { pipeline unit: 64, loop: 0 { " + copy + " } }\n";
  CHECK(said(first + "tb 1 { pipeline unit: 64, loop: 0 { " + last + " } }\n") == "");
  CHECK(said(first + "tb 1 { pipeline unit: 128, loop: 0 { " + last + " } }\n") ==
        "pipeline-differs");
  CHECK(said(first + "tb 0 { " + last + " }\ntb 0 { pipeline unit: 64, loop: 0 { " + copy +
             " } }\n") == "pipeline-interrupted");
}
