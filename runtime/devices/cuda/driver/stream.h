// A stream of the runtime's own, and copies on it that the host waits for: control data, zeros.
// It does not wait for stream 0, nor stream 0 for it: a collective that spins there blocks nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/api/device.h"
#include "runtime/devices/cuda/driver/vmm.h"

namespace mscclc::cuda {

inline abi::Address address_of(const void* pointer) {
  return static_cast<abi::Address>(reinterpret_cast<uintptr_t>(pointer));
}
inline uint8_t* pointer_to(abi::Address address) {
  return reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(address));
}

/// Default streams have handles up to 2, and are never destroyed: 2 is that of each thread.
inline bool is_default(abi::Stream stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

class OwnStream {
 public:
  /// `urgent`: with the highest priority, which has hardware queues of its own. nullptr: reported.
  [[nodiscard]] static std::unique_ptr<OwnStream> create(SharedContext context,
                                                         Diagnostics& diagnostics,
                                                         bool urgent = false);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  abi::Stream get() const { return stream_; }
  /// Gives the stream to the caller.
  abi::Stream release();

  /// Copies and waits; either end may be host or device memory. attempt() names it in errors.
  bool copy(void* to, const void* from, uint64_t bytes, const std::function<std::string()>& attempt,
            Diagnostics& diagnostics);
  /// Fills with zeros and waits.
  [[nodiscard]] bool clear(abi::Address at, uint64_t bytes, const std::string& attempt,
                           Diagnostics& diagnostics);

 private:
  explicit OwnStream(SharedContext context) : context_(std::move(context)) {}
  SharedContext context_;
  abi::Stream stream_ = nullptr;
};

/// An event, which marks a place on a stream.
class OwnEvent final : public StreamMark {
 public:
  /// nullptr: reported.
  [[nodiscard]] static std::unique_ptr<OwnEvent> create(SharedContext context,
                                                        Diagnostics& diagnostics);
  ~OwnEvent() override;
  OwnEvent(const OwnEvent&) = delete;
  OwnEvent& operator=(const OwnEvent&) = delete;

  [[nodiscard]] bool record(abi::Stream stream, Diagnostics& diagnostics);
  /// What is put on a stream from now on begins after what was before the last record().
  [[nodiscard]] bool delay(abi::Stream stream, Diagnostics& diagnostics) const;
  /// False too where the driver reports an error of what is before it.
  bool reached() override;
  /// For nodes of graphs that record it, or wait for it, at each replay.
  abi::Event handle() const { return event_; }

 private:
  explicit OwnEvent(SharedContext context) : context_(std::move(context)) {}
  const SharedContext context_;
  abi::Event event_ = nullptr;
};

}  // namespace mscclc::cuda
