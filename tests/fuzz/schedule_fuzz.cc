// Fuzzes the reader of schedules: any bytes are either a schedule for the plan at hand, which is
// written and read again unchanged and can be replayed, or are refused with a diagnostic.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "executor/host/schedule.h"
#include "ir/test_programs.h"

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
  return t.program;
}

/// The plan's hash cannot be guessed: HASH stands for it.
std::string with_hash(std::string text, const std::string& hash) {
  const size_t at = text.find("HASH");
  return at == std::string::npos ? text : text.replace(at, 4, hash);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Program program = make_program();
  static const std::string hash = plan_hash(program);
  const std::string text(reinterpret_cast<const char*>(data), size);
  Diagnostics diagnostics;
  const auto schedule = read_schedule(with_hash(text, hash), "s.json", program, diagnostics);
  if (schedule.has_value() == diagnostics.has_errors()) std::abort();
  (void)render_text(diagnostics, Sources());
  if (!schedule) return 0;
  const std::string written = write_schedule(*schedule);
  const auto back = read_schedule(written, "s.json", program, diagnostics);
  if (!back || write_schedule(*back) != written) std::abort();
  const RunSpec& spec = schedule->spec;
  if (spec.bytes < 4096 && spec.iterations < 8) (void)run_on_host(program, spec, diagnostics);
  return 0;
}
