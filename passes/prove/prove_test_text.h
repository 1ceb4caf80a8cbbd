// For tests of the prover: programs from text, proved as they are written. No pass adds a sync or
// joins ops, so that a test says itself what orders what.
#pragma once

#include <string>

#include "passes/prove/prove.h"
#include "passes/testing/test_text.h"

namespace mscclc::testing {

/// A rank's program, as plans hold it: ops by thread block, complete sums marked.
inline Program as_written(const std::string& text) {
  Program program = parse(text);
  run(program, {"assign", "groups", "split"});
  Program marked = program;
  PipelineOptions options;
  options.only = {"complete_sums"};
  Diagnostics ignored;
  return run_passes(marked, options, ignored) ? marked : program;
}

/// "proved", or the first error: "code: message".
inline std::string verdict(const Program& program) {
  Diagnostics diagnostics;
  const Proof proof = prove(program, diagnostics);
  CHECK(proof.proved != diagnostics.has_errors());
  if (proof.proved || !diagnostics.has_errors()) return "proved";
  return diagnostics.all()[0].code + ": " + diagnostics.all()[0].message;
}
inline std::string verdict(const std::string& text) { return verdict(as_written(text)); }

/// All errors, each with its notes: a line each.
inline std::string errors(const Program& program) {
  Diagnostics diagnostics;
  prove(program, diagnostics);
  std::string text = "\n";
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.span.valid()) text += std::to_string(d.span.line) + ": ";
    text += d.message + "\n";
    for (const Note& note : d.notes) text += "- " + note.text + "\n";
  }
  return text;
}
inline std::string errors(const std::string& text) { return errors(as_written(text)); }

/// Two ranks, each sends its input to the other. `body` may use s[4] and channels up, down
/// (memory).
inline std::string exchange(const std::string& body, const std::string& more = "",
                            const std::string& contract = "sendrecv(ranks: 2, shift: 1)") {
  return "program t\ncollective " + contract + "\nrank r in 0..2 {\n  buffer s[4]\n" +
         "  channel up = memory(1 - r)\n  channel down = memory(1 - r)\n" + more + "\n" + body +
         "\n}\n";
}

/// Everyone is in this call: the caller's buffers may be touched.
inline const std::string kEnter = "signal down relaxed\nwait down relaxed\nsync\n";

/// An allreduce of two ranks over scratch `buffer`.
inline std::string reduction(const std::string& buffer, const std::string& body,
                             bool shared = true) {
  return "program t\ncollective allreduce(ranks: 2)\n" +
         std::string(shared ? "launch reuse_scratch: true\n" : "") + "rank r in 0..2 {\n  buffer " +
         buffer + "\n  channel ch = memory(1 - r)\n  tb 0 {\n" + body + "  }\n}\n";
}
/// What its block may do: by a put, by a put that is answered, by packets.
inline const std::string kInCopies =
    "put ch.s[0] <- input\nsync\nsignal ch\nwait ch\nsync\nreduce output <- input, s[0]\n";
inline const std::string kWithAnswer = kInCopies + "sync\nsignal ch\nwait ch\n";
inline const std::string kPackets =
    "put_packets ch.s[0] <- input\nreduce_packets output <- input, s[0]\n";

/// An AllGather in a ring: each rank hands on what has come, in packets.
inline std::string packet_ring(const std::string& ranks, const std::string& packets,
                               uint32_t copies, bool shared = false) {
  return "program t\nparam R = " + ranks + "\ncollective allgather(ranks: R)\n" +
         "select dtypes: [f32]\n" + (shared ? "launch reuse_scratch: true\n" : "") +
         "rank r in 0..R {\n  buffer box[R] packets: " + packets +
         ", copies: " + std::to_string(copies) +
         "\n  channel next = memory((r + 1) % R) to prev\n"
         "  channel prev = memory((r - 1) % R) to next\n  tb 0 {\n"
         "    put_packets next.box[r] <- input\n    copy output[r] <- input\n"
         "    for s in 1..R {\n      let p = (r - s) % R\n"
         "      unpack_packets output[p] <- box[p]\n"
         "      if s < R - 1 { put_packets next.box[p] <- output[p] }\n    }\n  }\n}\n";
}

/// "race: race at X: nothing orders two accesses"
inline std::string race(const std::string& chunk) {
  return "race: race at " + chunk + ": nothing orders two accesses";
}

}  // namespace mscclc::testing
