// A device in name only, which counts its events. For libraries that tests build; each has one of
// its own, and registers it: C10_REGISTER_GUARD_IMPL(PrivateUse1, CountedEvents).
#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

const c10::Device kDevice(c10::kPrivateUse1, 0);

class CountedEvents final : public c10::impl::DeviceGuardImplInterface {
 public:
  /// How many were made so far, and how many of them there are.
  static std::vector<int64_t> counts() { return {made, made - ended}; }
  /// How often a tensor's memory was kept for a stream, and the current stream waited for an event.
  static std::vector<int64_t> uses() { return {kept, waited}; }

  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return stream(current); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(1); }
  c10::Stream exchangeStream(c10::Stream next) const override {
    return stream(std::exchange(current, next.id()));
  }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }

  void record(void** event, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event != nullptr) return;
    *event = new char;
    ++made;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<char*>(event);
    ++ended;
  }
  void block(void*, const c10::Stream& stream) const override {
    if (stream.id() == 0) ++waited;
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override { ++kept; }
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}

 private:
  static inline std::atomic<int64_t> made = 0, ended = 0, kept = 0, waited = 0;
  static inline thread_local c10::StreamId current = 0;
  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, kDevice, id);
  }
};
