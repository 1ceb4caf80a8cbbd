// Products and flags on streams of the host.
#pragma once

#include <memory>

#include "runtime/api/gemm.h"
#include "runtime/devices/host/in_flight.h"

namespace mscclc {

class Device;

class HostGemms final : public GemmStreams {
 public:
  /// Of a host device, which outlives it.
  HostGemms(Device& device, std::shared_ptr<InFlight> in_flight)
      : device_(device), in_flight_(std::move(in_flight)) {}

  StreamHandle create_urgent_stream(Diagnostics& diagnostics) override;
  bool order(StreamHandle earlier, StreamHandle later, Diagnostics& diagnostics) override;
  bool raise(uint32_t* word, uint32_t times, StreamHandle stream,
             Diagnostics& diagnostics) override;
  bool await(const FlagWait& wait, StreamHandle stream, Diagnostics& diagnostics) override;
  bool add_parts(const PartSum& sum, StreamHandle stream, Diagnostics& diagnostics) override;
  bool multiply(GemmProvider& provider, const Gemm& gemm, StreamHandle stream,
                std::function<void(const Diagnostics&)> failed, Diagnostics& diagnostics) override;
  std::unique_ptr<GemmProvider> make_provider(Diagnostics& diagnostics) override;

 private:
  Device& device_;
  const std::shared_ptr<InFlight> in_flight_;
};

}  // namespace mscclc
