// Schedules of MSCCL to programs: all steps and protocols, proved; and what is wrong with a
// schedule, at its line.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "compiler/msccl/read_xml.h"
#include "compiler/msccl/write_program.h"
#include "passes/prove/prove.h"

namespace mscclc::msccl {
namespace {

std::string algo(const std::string& attributes, const std::string& gpus) {
  return "<algo name=\"t\" " + attributes + ">\n" + gpus + "</algo>\n";
}

std::string step(uint32_t s, const std::string& type, const std::string& src, uint32_t from,
                 const std::string& dst, uint32_t to, const std::string& more = "") {
  return fmt::format(
      "<step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" "
      "cnt=\"1\" {} hasdep=\"0\"/>\n",
      s, type, src, from, dst, to, more.empty() ? "depid=\"-1\" deps=\"-1\"" : more);
}

/// NCCL's ring: sums go round once, and results once more.
std::string ring(uint32_t ranks, const std::string& protocol) {
  std::string gpus;
  for (uint32_t r = 0; r < ranks; ++r) {
    std::string steps = step(0, "s", "i", r, "i", r);
    for (uint32_t j = 1; j <= 2 * ranks - 2; ++j) {
      const uint32_t c = (r + 2 * ranks - j) % ranks;
      const char* type = j < ranks - 1       ? "rrs"
                         : j == ranks - 1    ? "rrcs"
                         : j < 2 * ranks - 2 ? "rcs"
                                             : "r";
      steps += step(j, type, "i", c, "o", c);
    }
    gpus += fmt::format(
        "<gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"0\">\n"
        "<tb id=\"0\" send=\"{}\" recv=\"{}\" chan=\"0\">\n{}</tb>\n</gpu>\n",
        r, ranks, ranks, (r + 1) % ranks, (r + ranks - 1) % ranks, steps);
  }
  return algo(fmt::format("proto=\"{}\" nchannels=\"1\" nchunksperloop=\"{}\" ngpus=\"{}\" "
                          "coll=\"allreduce\" inplace=\"0\"",
                          protocol, ranks, ranks),
              gpus);
}

/// "proved", or the first error, with its line.
std::string import_text(const std::string& xml, const WriteOptions& options = {}) {
  Sources sources;
  Diagnostics diagnostics;
  const auto first = [&] {
    const Diagnostic& d = diagnostics.all()[0];
    return fmt::format("{}: {}", d.span.line, d.message);
  };
  const auto schedule = read_xml(sources, sources.add("t.xml", xml), diagnostics);
  if (!schedule) return first();
  const auto order = find_order(*schedule, diagnostics);
  if (!order) return first();
  const std::string text = write_program(*schedule, *order, options);
  const auto program = compile(sources, sources.add("t.mscl", text), {}, {}, diagnostics);
  if (!program) return text + first();
  return prove(*program, diagnostics).proved ? "proved" : text + first();
}

TEST_CASE("a ring in each protocol, in one node and over ports") {
  for (const char* protocol : {"Simple", "LL", "LL128"}) {
    for (const uint32_t ranks : {2u, 4u}) {
      CHECK(import_text(ring(ranks, protocol)) == "proved");
      CHECK(import_text(ring(ranks, protocol), {.gpus_per_node = 2}) == "proved");
    }
  }
  // Each rank hears of all others before it can be in the next call but one.
  CHECK(import_text(ring(4, "LL"), {.opening = false}) == "proved");
}

/// Rank 1 sends; block 1 of rank 0 adds up what block 0 has received.
std::string reduce_here(const std::string& waits) {
  return algo(
      "nchunksperloop=\"1\" ngpus=\"2\" coll=\"reduce\" inplace=\"0\" minBytes=\"1024\" "
      "maxBytes=\"4096\"",
      "<gpu id=\"0\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"1\">\n"
      "<tb id=\"0\" send=\"-1\" recv=\"1\" chan=\"0\">\n" +
          step(0, "r", "i", 0, "s", 0) +
          "</tb>\n<tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">\n" +
          step(0, "cpy", "i", 0, "o", 0) + step(1, "nop", "i", 0, "i", 0, waits) +
          step(2, "re", "s", 0, "o", 0) +
          "</tb>\n</gpu>\n<gpu id=\"1\" i_chunks=\"1\" o_chunks=\"0\" s_chunks=\"0\">\n"
          "<tb id=\"0\" send=\"0\" recv=\"-1\" chan=\"0\">\n" +
          step(0, "s", "i", 0, "i", 0) + "</tb>\n</gpu>\n");
}

TEST_CASE("blocks of a GPU that wait for each other") {
  CHECK(import_text(reduce_here("depid=\"0\" deps=\"0\"")) == "proved");
  CHECK(import_text(reduce_here("depid=\"2\" deps=\"0\"")) ==
        "8: it waits for step 0 of thread block 2, which is not there");
  CHECK(import_text(reduce_here("depid=\"1\" deps=\"2\"")) ==
        "8: step 1 of thread block 1 of GPU 0 waits forever");
}

std::string gather(const std::string& attributes, const std::string& first_step) {
  return algo(attributes,
              "<gpu id=\"0\" i_chunks=\"0\" o_chunks=\"2\" s_chunks=\"0\">\n"
              "<tb id=\"0\" send=\"1\" recv=\"1\" chan=\"0\">\n" +
                  first_step + step(1, "r", "o", 1, "o", 1) +
                  "</tb>\n</gpu>\n<gpu id=\"1\" i_chunks=\"0\" o_chunks=\"2\" s_chunks=\"0\">\n"
                  "<tb id=\"0\" send=\"0\" recv=\"0\" chan=\"0\">\n" +
                  step(0, "s", "o", 1, "o", 1) + step(1, "r", "o", 0, "o", 0) + "</tb>\n</gpu>\n");
}
const std::string kGather = "nchunksperloop=\"2\" ngpus=\"2\" coll=\"allgather\" inplace=\"1\"";

TEST_CASE("in place, only the output is named") {
  CHECK(import_text(gather(kGather, step(0, "s", "o", 0, "o", 0))) == "proved");
}

TEST_CASE("what is wrong is said at its line") {
  CHECK(import_text("<algo") == "1: this is not XML: unclosed token");
  CHECK(import_text("<!DOCTYPE x [<!ENTITY a \"b\">]>\n<algo/>") ==
        "1: a schedule has no document type");
  CHECK(import_text("<gpu/>") == "1: 'gpu' where 'algo' is expected");
  CHECK(import_text(gather("nchunksperloop=\"2\" ngpus=\"2\" coll=\"gossip\"", "")) ==
        "1: unknown collective 'gossip'");
  CHECK(import_text(gather("nchunksperloop=\"2\" ngpus=\"2x\" coll=\"allgather\"", "")) ==
        "1: 'ngpus' is a number from 1 to 4096, not '2x'");
  CHECK(import_text(gather("nchunksperloop=\"2\" ngpus=\"3\" coll=\"custom\"",
                           step(0, "s", "o", 0, "o", 0))) == "1: there is no GPU 2: 'ngpus' is 3");
  CHECK(import_text(gather(kGather, step(0, "send", "o", 0, "o", 0))) == "4: unknown step 'send'");
  CHECK(import_text(gather(kGather, step(0, "s", "o", 2, "o", 0))) ==
        "4: chunks 2 to 2 of the output of GPU 0, which has 2");
  CHECK(import_text(gather(kGather, step(0, "nop", "o", 0, "o", 0))) ==
        "11: GPU 0 sends nothing to GPU 1 over channel 0");
  CHECK(import_text(gather(kGather, step(0, "s", "o", 0, "o", 0) + step(1, "s", "o", 0, "o", 0))) ==
        "6: step 1 where 2 is expected");
}

}  // namespace
}  // namespace mscclc::msccl
