// Fuzzes the reader of schedules: any bytes are either a schedule for the plan at hand, or for two
// of it on three ranks, which is written and read again unchanged and can be replayed, or are
// refused with a diagnostic.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/simulator/schedules/schedule.h"
#include "tests/helpers/programs/test_programs.h"

namespace {

using namespace mscclc;

/// Two ranks that add up each other's chunk.
Program make_program() {
  using namespace testing;
  TestProgram t(2, 1);
  for (uint32_t r = 0; r < 2; ++r) {
    t.buffer(r, "inbox", 1);
    t.channel(r, ChannelKind::memory, "ch", {}, 1 - r, 0);
    t.op_in(r, 0, OpKind::put, {far(0, 2, 0)}, {local(kInput, 0)});
    t.op_in(r, 0, OpKind::signal, {end_of(0)});
    t.op_in(r, 0, OpKind::wait, {end_of(0)});
    t.op_in(r, 0, OpKind::reduce, {local(kOutput, 0)}, {local(kInput, 0), local(2, 0)});
  }
  t.program.split = true;
  t.program.launch.reuse_scratch = true;
  return t.program;
}

/// The plan's hash cannot be guessed: HASH stands for it.
std::string with_hash(std::string text, const std::string& hash) {
  constexpr std::string_view kHash = "HASH";
  for (size_t at = 0; (at = text.find(kHash, at)) != std::string::npos; at += hash.size()) {
    text.replace(at, kHash.size(), hash);
  }
  return text;
}

bool small(const RunSpec& spec) {
  for (const uint64_t bytes : spec.plan_bytes) {
    if (bytes >= 4096) return false;
  }
  for (const std::vector<uint32_t>& calls : spec.order) {
    if (calls.size() >= 8) return false;
  }
  return spec.bytes < 4096 && spec.iterations < 8;
}

void read_and_run(const std::string& text, std::span<const PlacedPlan> plans) {
  Diagnostics diagnostics;
  const auto schedule = read_schedule(text, "s.json", plans, diagnostics);
  if (schedule.has_value() == diagnostics.has_errors()) std::abort();
  (void)render_text(diagnostics, Sources());
  if (!schedule) return;
  const std::string written = write_schedule(*schedule);
  const auto back = read_schedule(written, "s.json", plans, diagnostics);
  if (!back || write_schedule(*back) != written) std::abort();
  if (small(schedule->spec)) (void)Simulator(plans).run(schedule->spec, diagnostics);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Program program = make_program();
  static const std::string hash = program_hash(program);
  static const PlacedPlan alone = placed_alone(program);
  static const std::vector<PlacedPlan> two = {{&program, "a", {0, 1}}, {&program, "b", {2, 1}}};
  const std::string text = with_hash(std::string(reinterpret_cast<const char*>(data), size), hash);
  read_and_run(text, std::span(&alone, 1));
  read_and_run(text, two);
  return 0;
}
