// The streams of this process's host devices, and what calls on them are ordered by.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/api/device.h"
#include "runtime/devices/host/host_stream.h"
#include "runtime/support/process/per_process.h"

namespace mscclc {

class HostMark final : public StreamMark {
 public:
  bool reached() override { return flag->load(std::memory_order_acquire); }
  std::shared_ptr<std::atomic<bool>> flag = std::make_shared<std::atomic<bool>>(false);
};

class HostChain final : public StreamChain {
 public:
  bool follow(StreamHandle stream, Diagnostics&) override {
    if (end_ != nullptr && stream != last_) static_cast<HostStream*>(stream)->wait_for(end_);
    return true;
  }
  bool put_last(StreamHandle stream, Diagnostics&) override {
    end_ = std::make_shared<std::atomic<bool>>(false);
    static_cast<HostStream*>(stream)->mark(end_);
    last_ = stream;
    return true;
  }

 private:
  std::shared_ptr<std::atomic<bool>> end_;
  StreamHandle last_ = nullptr;  ///< where that is; a handle that comes again has nothing before it
};

/// The streams of all host devices of the process, so that one that was destroyed, or never was
/// one, is known. Thread safety: from any thread.
class HostStreams {
 public:
  StreamHandle add(std::shared_ptr<HostStream> stream, const Device* device) {
    const std::lock_guard lock(mutex_);
    HostStream* const handle = stream.get();
    streams_[handle] = {std::move(stream), device};
    return handle;
  }
  bool has(StreamHandle handle) const {
    const std::lock_guard lock(mutex_);
    return streams_.count(handle) != 0;
  }
  /// nullptr: there is none.
  std::shared_ptr<HostStream> take(StreamHandle handle) {
    const std::lock_guard lock(mutex_);
    auto taken = streams_.extract(handle);
    return taken.empty() ? nullptr : std::move(taken.mapped().stream);
  }
  std::vector<std::shared_ptr<HostStream>> of(const Device* device) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<HostStream>> streams;
    for (const auto& [handle, entry] : streams_) {
      if (entry.device == device) streams.push_back(entry.stream);
    }
    return streams;
  }
  static HostStreams& of_process() { return process_wide<HostStreams>(); }

 private:
  struct LivingStream {
    std::shared_ptr<HostStream> stream;
    const Device* device;
  };
  mutable std::mutex mutex_;
  std::map<StreamHandle, LivingStream> streams_;
};

}  // namespace mscclc
