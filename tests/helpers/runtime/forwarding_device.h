// A device that is another one except for what a test overrides.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "executor/launch.h"
#include "runtime/api/device.h"
#include "runtime/support/memory/handle.h"

namespace mscclc::testing {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::string name() const override { return device_->name(); }
  bool runs_rows() const override { return device_->runs_rows(); }
  bool bind_thread(Diagnostics& diagnostics) override { return device_->bind_thread(diagnostics); }
  void set_timeout(std::chrono::milliseconds timeout) override { device_->set_timeout(timeout); }
  void set_end_of_waits(std::function<bool()> over) override {
    device_->set_end_of_waits(std::move(over));
  }
  std::optional<std::vector<uint8_t>> link_name(Diagnostics& diagnostics) override {
    return device_->link_name(diagnostics);
  }
  std::optional<Link> link_to(std::span<const uint8_t> peer, Diagnostics& diagnostics) override {
    return device_->link_to(peer, diagnostics);
  }
  std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                   Diagnostics& diagnostics) override {
    return device_->allocate(bytes, what, diagnostics);
  }
  std::unique_ptr<Memory> allocate_visible(uint64_t bytes, const std::string& what,
                                           Diagnostics& diagnostics) override {
    return device_->allocate_visible(bytes, what, diagnostics);
  }
  std::optional<MemoryHandle> export_memory(const void* address, uint64_t bytes,
                                            Diagnostics& diagnostics) override {
    return device_->export_memory(address, bytes, diagnostics);
  }
  std::unique_ptr<HeldMemory> hold_memory(const void* address, uint64_t bytes,
                                          Diagnostics& diagnostics) override {
    return device_->hold_memory(address, bytes, diagnostics);
  }
  std::unique_ptr<Memory> import_memory(const MemoryHandle& handle,
                                        Diagnostics& diagnostics) override {
    return device_->import_memory(handle, diagnostics);
  }
  std::unique_ptr<Memory> reach_memory(const MemoryHandle& handle,
                                       Diagnostics& diagnostics) override {
    return device_->reach_memory(handle, diagnostics);
  }
  GemmStreams* gemms() override { return device_->gemms(); }
  bool write(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics) override {
    return device_->write(to, from, bytes, diagnostics);
  }
  bool read(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics) override {
    return device_->read(to, from, bytes, diagnostics);
  }
  bool copy(void* to, const void* from, uint64_t bytes, StreamHandle stream,
            Diagnostics& diagnostics) override {
    return device_->copy(to, from, bytes, stream, diagnostics);
  }
  bool scale(const Scaling& what, StreamHandle stream, Diagnostics& diagnostics) override {
    return device_->scale(what, stream, diagnostics);
  }
  std::vector<uint8_t> room() const override { return device_->room(); }
  std::optional<uint32_t> fits(const device::LaunchPlan& plan, Diagnostics& diagnostics) override {
    return device_->fits(plan, diagnostics);
  }
  bool carries_programs() const override { return device_->carries_programs(); }
  bool launches_early() const override { return device_->launches_early(); }
  bool launch(const device::LaunchPlan& plan, StreamHandle stream,
              Diagnostics& diagnostics) override {
    return device_->launch(plan, stream, diagnostics);
  }
  bool synchronize(StreamHandle stream, Diagnostics& diagnostics) override {
    return device_->synchronize(stream, diagnostics);
  }
  bool drain(Diagnostics& diagnostics) override { return device_->drain(diagnostics); }
  bool mark(StreamHandle stream, std::unique_ptr<StreamMark>& mark,
            Diagnostics& diagnostics) override {
    return device_->mark(stream, mark, diagnostics);
  }
  bool record_event(void* event, StreamHandle stream, Diagnostics& diagnostics) override {
    return device_->record_event(event, stream, diagnostics);
  }
  std::unique_ptr<StreamChain> chain_streams(Replays replays, Diagnostics& diagnostics) override {
    return device_->chain_streams(replays, diagnostics);
  }
  bool is_capturing(StreamHandle stream) override { return device_->is_capturing(stream); }
  bool at_end_of_graph(StreamHandle stream, std::function<void()> gone) override {
    return device_->at_end_of_graph(stream, std::move(gone));
  }
  StreamHandle create_stream(Diagnostics& diagnostics) override {
    return device_->create_stream(diagnostics);
  }
  void destroy_stream(StreamHandle stream) override { device_->destroy_stream(stream); }
  std::unique_ptr<LaneEnd> await_lane(const LanePeer& peer, Diagnostics& diagnostics) override {
    return device_->await_lane(peer, diagnostics);
  }
  std::unique_ptr<Lane> open_lane(const LanePeer& peer, Diagnostics& diagnostics) override {
    return device_->open_lane(peer, diagnostics);
  }
  bool join_switch(Bootstrap& bootstrap, const std::vector<uint32_t>& members,
                   const std::vector<SwitchRegion>& regions, std::unique_ptr<SwitchTeam>& team,
                   Diagnostics& diagnostics) override {
    return device_->join_switch(bootstrap, members, regions, team, diagnostics);
  }

 private:
  const std::shared_ptr<Device> device_;
};

}  // namespace mscclc::testing
