// The host device of a rank on which nothing that is launched runs: an error says so when it is
// waited for.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "runtime/device/device.h"

namespace mscclc::testing {

class Unlaunched final : public Device {
 public:
  /// `at_once`: launch() fails already.
  Unlaunched(std::unique_ptr<Device> host, bool at_once)
      : host_(std::move(host)), at_once_(at_once) {}
  std::string name() const override { return host_->name(); }
  std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                   Diagnostics& diagnostics) override {
    return host_->allocate(bytes, what, diagnostics);
  }
  std::unique_ptr<Memory> allocate_visible(uint64_t bytes, const std::string& what,
                                           Diagnostics& diagnostics) override {
    return host_->allocate_visible(bytes, what, diagnostics);
  }
  std::optional<MemoryHandle> export_memory(const void* address, uint64_t bytes,
                                            Diagnostics& diagnostics) override {
    return host_->export_memory(address, bytes, diagnostics);
  }
  std::unique_ptr<HeldMemory> hold_memory(const void* address, uint64_t bytes,
                                          Diagnostics& diagnostics) override {
    return host_->hold_memory(address, bytes, diagnostics);
  }
  std::unique_ptr<Memory> import_memory(const MemoryHandle& handle,
                                        Diagnostics& diagnostics) override {
    return host_->import_memory(handle, diagnostics);
  }
  bool write(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics) override {
    return host_->write(to, from, bytes, diagnostics);
  }
  bool read(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics) override {
    return host_->read(to, from, bytes, diagnostics);
  }
  bool copy(void* to, const void* from, uint64_t bytes, StreamHandle stream,
            Diagnostics& diagnostics) override {
    return host_->copy(to, from, bytes, stream, diagnostics);
  }
  std::optional<uint32_t> fits(const device::LaunchPlan& plan, Diagnostics& diagnostics) override {
    return host_->fits(plan, diagnostics);
  }
  bool launch(const device::LaunchPlan&, StreamHandle, Diagnostics& diagnostics) override {
    return !at_once_ || refuse(diagnostics);
  }
  bool synchronize(StreamHandle, Diagnostics& diagnostics) override { return refuse(diagnostics); }
  bool mark(StreamHandle stream, std::unique_ptr<StreamMark>& mark,
            Diagnostics& diagnostics) override {
    return host_->mark(stream, mark, diagnostics);
  }
  StreamHandle create_stream(Diagnostics& diagnostics) override {
    return host_->create_stream(diagnostics);
  }
  void destroy_stream(StreamHandle stream) override { host_->destroy_stream(stream); }
  std::unique_ptr<LaneEnd> await_lane(uint32_t peer, LaneFailed failed,
                                      Diagnostics& diagnostics) override {
    return host_->await_lane(peer, std::move(failed), diagnostics);
  }
  std::unique_ptr<Lane> open_lane(const LanePeer& peer, Diagnostics& diagnostics) override {
    return host_->open_lane(peer, diagnostics);
  }

 private:
  static bool refuse(Diagnostics& diagnostics) {
    diagnostics.error("out-of-memory", {}, "a launch has not run");
    return false;
  }

  const std::unique_ptr<Device> host_;
  const bool at_once_;
};

}  // namespace mscclc::testing
