// What must not change a program's plan: the number of threads that compile it, and passes that
// run twice.
#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "ir/print/print.h"
#include "passes/registry.h"
#include "plans/format/plan_json.h"
#include "tests/library/library.h"

namespace mscclc {
namespace {

struct Compiled {
  std::string plan, diagnostics;
};

Compiled compiled(const std::string& text, const Defines& defines, uint32_t threads) {
  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions options;
  options.defines = defines;
  options.threads = threads;
  PassOptions passes;
  passes.threads = threads;
  Compiled result;
  const auto program = compile(sources, sources.add("t.mscl", text), options, passes, diagnostics);
  const auto append = [&](std::string_view block) {
    result.plan += block;
    return true;
  };
  const Target target = builtin_targets().front();
  const bool written =
      program && write_plan(*program, target, append, diagnostics, nullptr, threads);
  if (!written) result.plan.clear();
  result.diagnostics = render_text(diagnostics, sources);
  return result;
}

/// Worlds of few and of more ranks than threads.
std::vector<Defines> some_worlds(const LibraryProgram& entry) {
  return {entry.worlds.front(), entry.worlds[entry.worlds.size() / 2], entry.worlds.back()};
}

}  // namespace

TEST_CASE("a plan is the same whatever the number of threads") {
  for (const LibraryProgram& entry : library()) {
    const std::string text = library_text(entry.name);
    for (const Defines& defines : some_worlds(entry)) {
      INFO(entry.name << " " << mscclc::text(defines));
      const Compiled alone = compiled(text, defines, 1);
      REQUIRE(alone.plan != "");
      for (const uint32_t threads : {2u, 3u, 7u}) {
        const Compiled shared = compiled(text, defines, threads);
        CHECK(shared.diagnostics == alone.diagnostics);
        CHECK((shared.plan == alone.plan));
      }
    }
  }
}

TEST_CASE("what is wrong is reported alike whatever the number of threads") {
  const std::string head = "collective allreduce(ranks: 6, chunks: 6)\n";
  const std::string body =
      "  buffer s[2]\n  channel up[p in 0..6 except r] = memory(p)\n  semaphore sem\n";
  const std::string rank = "rank r in 0..6 {\n" + body;
  for (const std::string& text : {
           // in the unroller: in one rank, in all of them, a warning in the last one
           head + rank + "tb 0 { copy output[r + 1] <- input[0] } }",
           head + rank + "tb 0 { copy nothing[r] <- input[0] ; copy output[9] <- input[r] } }",
           head + rank + "tb 0 { copy output[r] <- input[r] } if r == 5 { tb 1 { } } }",
           head + rank + "for i in 0..r { if r == 4 { signal up[r] } } }",
           // units that ranks disagree about
           head + rank +
               "buffer u[1] units: 2\nif r < 5 { pipeline unit: 64 * (1 + r / 3) { "
               "tb 0 { put up[5].u[0] <- input[0] } } } }",
           // at the end of it
           head + rank + "tb 0 { if r > 2 { signal up[0] } } }",
           head + rank + "tb 0 { if r > 3 { release sem } } }",
           // in passes
           head + "launch auto_sync: false\n" + rank +
               "tb 0 { copy s[0] <- input[r] } tb 1 { copy output[r] <- s[0] } }",
           head + rank +
               "tb 0 { if r == 3 { acquire sem } copy output[r] <- input[r] "
               "if r == 3 { release sem } } }",
           head + rank + "copy s[0] <- input[0] tb 0 { copy output[r] <- s[0] } }",
           // in the writer
           head + "launch threads: 1024\n" + rank +
               "tb 0 { for p in 0..6 except r { signal up[p] ; wait up[p] } } }",
       }) {
    INFO(text);
    const Compiled alone = compiled(text, {}, 1);
    for (const uint32_t threads : {2u, 3u, 5u}) {
      const Compiled shared = compiled(text, {}, threads);
      CHECK(shared.diagnostics == alone.diagnostics);
      CHECK((shared.plan == alone.plan));
    }
  }
}

TEST_CASE("a pass that runs again changes nothing more") {
  for (const LibraryProgram& entry : library()) {
    for (const Defines& defines : some_worlds(entry)) {
      Sources sources;
      Diagnostics diagnostics;
      FrontEndOptions options;
      options.defines = defines;
      const FileId file = sources.add("t.mscl", library_text(entry.name));
      auto program = parse_program(sources, file, options, diagnostics);
      REQUIRE(program);
      for (const PassInfo& pass : passes()) {
        INFO(entry.name << " " << mscclc::text(defines) << ": " << pass.name);
        PassContext context{diagnostics};
        REQUIRE(pass.run(*program, context));
        const std::string once = print_ir(*program);
        REQUIRE(pass.run(*program, context));
        CHECK(print_ir(*program) == once);
      }
    }
  }
}

}  // namespace mscclc
