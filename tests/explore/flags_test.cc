// Plans with flags: the prover against the explorer, which plays the other side in every order that
// the declarations allow. Right programs, and what is left when lines of them are taken out, said
// twice, or exchanged.

#include <optional>

#include "executor/cpu/dice.h"
#include "passes/prove/prove_test_text.h"
#include "tests/explore/explore.h"

namespace mscclc {
namespace {

using Lines = std::vector<std::string>;

struct Base {
  const char* name;
  std::string header, declared;
  Lines body;  ///< of each of two ranks
  bool in_place = false;
};

const Base kBases[] = {
    {"gather",
     "external flags ready[2] of: output\ncollective allgather(ranks: 2, inplace: false)\n",
     "channel c = memory(1 - r)\n",
     {"tb 0 {", "signal c relaxed", "copy output[r] <- input[0]", "sync", "notify ready[r]",
      "wait c relaxed", "sync", "put c.output[r] <- input[0]", "sync", "signal c", "wait c", "sync",
      "notify ready[1 - r]", "}"}},
    {"send",
     "external flags tiles[2] of: input\ncollective sendrecv(ranks: 2, shift: 1, chunks: 2, "
     "inplace: false)\n",
     "channel c = memory(1 - r)\n",
     {"tb 0 {", "signal c relaxed", "wait c relaxed", "await tiles[0]", "sync",
      "put c.output[0] <- input[0]", "await tiles[1]", "sync", "put c.output[1] <- input[1]",
      "sync", "signal c", "wait c", "}"}},
    {"reduce",
     "external flags tiles[1] of: input, raises: 2\ncollective allreduce(ranks: 2, inplace: "
     "true)\n",
     "buffer s[1] copies: 2\nchannel c = memory(1 - r)\n",
     {"tb 0 {", "signal c relaxed", "wait c relaxed", "await tiles[0]", "sync",
      "put c.s[0] <- input[0]", "sync", "signal c", "wait c", "sync",
      "reduce output[0] <- input[0], s[0]", "}"},
     true},
    {"chain",
     "external flags ready[2] of: output\nexternal flags tiles[2] of: input\ncollective "
     "sendrecv(ranks: 2, shift: 0, chunks: 2, inplace: false)\n",
     "",
     {"tb 0 {", "await tiles[0]", "sync", "copy output[0] <- input[0]", "sync", "notify ready[0]",
      "await tiles[1]", "sync", "copy output[1] <- input[1]", "sync", "notify ready[1]", "}"}},
    {"blocks",
     "external flags ready[1] of: output, raises: 2\nexternal flags tiles[1] of: input\ncollective "
     "sendrecv(ranks: 2, shift: 0, chunks: 2, inplace: false)\n",
     "",
     {"tb 0 {", "await tiles[0]", "sync", "copy output[0] <- input[0]", "sync", "notify ready[0]",
      "}", "tb 1 {", "await tiles[0]", "sync", "copy output[1] <- input[1]", "sync",
      "notify ready[0]", "}"}},
};

std::string text_of(const Base& base, const Lines& body) {
  std::string text = "program t\n" + base.header + "rank r in 0..2 {\n" + base.declared;
  for (const std::string& line : body) text += line + "\n";
  return text + "}\n";
}

bool is_frame(const std::string& line) { return line == "}" || line.starts_with("tb "); }

/// Another body: a line is missing, is there twice, or has changed places with the next.
Lines changed(Lines body, Dice& dice) {
  for (;;) {
    const uint32_t at = dice.below(static_cast<uint32_t>(body.size()) - 1);
    if (is_frame(body[at])) continue;
    const uint32_t how = dice.below(3);
    if (how == 0) body.erase(body.begin() + at);
    if (how == 1) body.insert(body.begin() + at, std::string(body[at]));
    if (how == 2 && is_frame(body[at + 1])) continue;
    if (how == 2) std::swap(body[at], body[at + 1]);
    return body;
  }
}

/// As it is written, complete sums marked; nothing if it is no program.
std::optional<Program> written(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  auto program = parse_program(sources, sources.add("t.mscl", text), {}, diagnostics);
  PassOptions options;
  options.only = {"assign", "groups", "split"};
  if (!program || !run_passes(*program, options, diagnostics)) return std::nullopt;
  Program marked = *program;
  options.only = {"complete_sums"};
  if (run_passes(marked, options, diagnostics)) program = std::move(marked);
  if (!verify_structure(*program, diagnostics)) return std::nullopt;
  return program;
}

/// Do both say the same of it? Text that is no program is left out.
bool agree(const Base& base, const Lines& body, bool& right) {
  const std::string text = text_of(base, body);
  const std::optional<Program> program = written(text);
  if (!program) return true;
  Diagnostics diagnostics;
  const uint32_t calls = base.in_place ? 3 : 2;  // one more than the copies of its scratch
  const Exploration found = explore(
      *program, {.calls = calls, .in_place = base.in_place, .most_states = 5000, .reduced = true});
  if (found.verdict == Verdict::too_large) return true;
  right = found.verdict == Verdict::right;
  const bool proved = prove(*program, diagnostics).proved;
  INFO(text << name(found.verdict) << ": " << found.reason << '\n'
            << render_text(diagnostics, Sources{}));
  CHECK(proved == right);
  return proved == right;
}

TEST_CASE("prover and explorer agree on plans with flags") {
  Dice dice(43);
  for (const Base& base : kBases) {
    bool right = false;
    INFO(base.name);
    CHECK(agree(base, base.body, right));
    CHECK(right);
    uint32_t wrong = 0;
    for (int i = 0; i < 150; ++i) {
      right = true;
      Lines body = changed(base.body, dice);
      if (dice.below(3) == 0) body = changed(body, dice);
      if (!agree(base, body, right)) return;
      wrong += right ? 0 : 1;
    }
    CHECK(wrong > 5);
  }
}

}  // namespace
}  // namespace mscclc
