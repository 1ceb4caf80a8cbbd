#include "runtime/devices/host/host_gemms.h"

#include <atomic>

#include "executor/shared_atomics.h"
#include "runtime/api/device.h"
#include "runtime/devices/host/cpu_gemm.h"
#include "runtime/devices/host/host_stream.h"
#include "runtime/support/idle.h"

namespace mscclc {
namespace {

HostStream& host_stream(StreamHandle stream) { return *static_cast<HostStream*>(stream); }

/// As numbers that wrap: has `count` come so far?
bool has_reached(uint32_t count, uint32_t goal) { return static_cast<int32_t>(count - goal) >= 0; }

void poll(const FlagWait& wait) {
  const uint32_t run = load_acquire<uint32_t>(wait.runs) + 1;
  Idle idle;
  while (!has_reached(load_acquire<uint32_t>(wait.word), run * wait.raises) &&
         !has_reached(load_acquire<uint32_t>(wait.ended), run)) {
    idle.rest();
  }
  if (wait.counts) store_release<uint32_t>(wait.runs, run);
}

}  // namespace

StreamHandle HostGemms::create_urgent_stream(Diagnostics& diagnostics) {
  return device_.create_stream(diagnostics);
}

bool HostGemms::order(StreamHandle earlier, StreamHandle later, Diagnostics&) {
  auto flag = std::make_shared<std::atomic<bool>>(false);
  host_stream(earlier).mark(flag);
  host_stream(later).wait_for(std::move(flag));
  return true;
}

bool HostGemms::raise(uint32_t* word, uint32_t times, StreamHandle stream, Diagnostics&) {
  host_stream(stream).call(
      [=] { shared_word<uint32_t>(word).fetch_add(times, std::memory_order_release); },
      in_flight_->begin(), true);
  return true;
}

bool HostGemms::await(const FlagWait& wait, StreamHandle stream, Diagnostics&) {
  host_stream(stream).call([=] { poll(wait); }, in_flight_->begin(), false);
  return true;
}

bool HostGemms::add_parts(const PartSum& sum, StreamHandle stream, Diagnostics&) {
  host_stream(stream).call([=] { cpu_add_parts(sum); }, in_flight_->begin(), false);
  return true;
}

bool HostGemms::multiply(GemmProvider& provider, const Gemm& gemm, StreamHandle stream,
                         std::function<void(const Diagnostics&)> failed, Diagnostics&) {
  host_stream(stream).call(
      [&provider, gemm, stream, failed = std::move(failed)] {
        Diagnostics diagnostics;
        if (!provider.run(gemm, stream, diagnostics)) failed(diagnostics);
      },
      in_flight_->begin(), false);
  return true;
}

std::unique_ptr<GemmProvider> HostGemms::make_provider(Diagnostics&) {
  return std::make_unique<CpuGemmProvider>();
}

}  // namespace mscclc
