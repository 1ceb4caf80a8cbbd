// For tests of fuse: what it makes of rank 0 of a small world, as text.
#pragma once

#include <map>
#include <regex>
#include <string>
#include <string_view>

#include "passes/framework/passes.h"
#include "passes/fuse/fuse.h"
#include "passes/testing/test_text.h"

namespace mscclc::testing {

/// What the ops of a body (without `for`) leave for others to do: waits for its signals, signals
/// for its waits, releases and acquires.
class Balance {
 public:
  explicit Balance(const std::string& body) : in_loop_(body.find("pipeline") != body.npos) {
    static const std::regex kOp(
        R"(\b(signal|wait|release|acquire|put_with_signal|put_with_signal_and_flush) ([^;}<\n]*))");
    static const std::regex kEnd(R"((\w+)(\[(\d)\])?(\.\w+\[[^\]]*\])?)");
    for (std::sregex_iterator op(body.begin(), body.end(), kOp), end; op != end; ++op) {
      const std::string kind = (*op)[1], operands = (*op)[2];
      for (std::sregex_iterator o(operands.begin(), operands.end(), kEnd); o != end; ++o) {
        const std::string name = (*o)[1], peer = (*o)[3];
        if (name == "relaxed") continue;
        if (peer.empty()) {
          semaphores_[name] += kind == "acquire" ? -1 : 1;
        } else {
          peers_ +=
              "  if r == " + peer + (kind == "wait" ? " { signal " : " { wait ") + name + "[0] }\n";
        }
      }
    }
  }
  /// For the ranks other than 0.
  std::string peers() const {
    return in_loop_ ? "pipeline unit: 1KiB {\n" + peers_ + "}\n" : peers_;
  }
  /// For another block of rank 0.
  std::string here() const {
    std::string text;
    for (const auto& [name, count] : semaphores_) {
      for (int i = std::abs(count); i > 0; --i) {
        text += "  " + std::string(count > 0 ? "acquire " : "release ") + name + "\n";
      }
    }
    return text.empty() ? "" : "tb 7 {\n" + text + "}\n";
  }

 private:
  bool in_loop_;
  std::string peers_;
  std::map<std::string, int> semaphores_;  ///< releases less acquires
};

/// Four ranks with everything that ops can speak of. The body to test is that of rank 0; outside
/// braces its ops stand in tb 0. Others do what it needs of them, and `others`.
struct World {
  std::string contract = "allreduce(ranks: 4, chunks: 8)";
  std::string launch = "";  ///< a line of the header
  std::string others = "";
  OpLimits limits = {};

  std::string text(const std::string& body) const {
    const bool placed = body.find('{') != std::string::npos;
    const Balance balance(body);
    const bool has_flags = body.find("given[") != body.npos || body.find("made[") != body.npos;
    const std::string flags =
        "external flags given[8] of: output\nexternal flags made[8] of: input\n";
    return "program t\n" + (has_flags ? flags : "") + "collective " + contract +
           "\nselect dtypes: [f32]\n" + launch + R"(
rank r in 0..4 {
  let peers = 0..4 except r
  buffer s[8]
  buffer t[8]
  buffer u[8]
  buffer q[8] packets: LL16
  buffer k[8] packets: LL16
  buffer w[8] packets: LL8
  buffer z[8] packets: sentinel
  channel ch[p in peers] = memory(p)
  channel net[p in peers] = port(p)
  channel sw = switch(0..4)
  channel tw = switch(0..4)
  semaphore a
  semaphore b
  if r == 0 {
)" + (placed ? body : "tb 0 {\n" + body + "\n}") +
           "\n" + balance.here() + "} else { tb 0 {\n" + others + balance.peers() + "} }\n}\n";
  }

  /// The ops of rank 0 after the pass.
  std::string fused(const std::string& body) const {
    Program program = parse(text(body));
    run(program, {"assign"});
    fuse_ops(program, limits);
    Diagnostics diagnostics;
    const bool ok = verify_structure(program, diagnostics);
    INFO(render_text(diagnostics, {}));
    REQUIRE(ok);
    return tested(program);
  }

  /// True if nothing fuses.
  bool keeps(const std::string& body) const {
    Program program = parse(text(body));
    run(program, {"assign"});
    return fused(body) == tested(program);
  }

 private:
  /// Without the block that balances semaphores.
  static std::string tested(const Program& program) {
    static const std::regex kBalance("7: .*\n");
    return std::regex_replace(listing(program, 0), kBalance, "");
  }
};

inline std::string fused(const std::string& body) { return World{}.fused(body); }
inline bool keeps(const std::string& body) { return World{}.keeps(body); }

}  // namespace mscclc::testing
