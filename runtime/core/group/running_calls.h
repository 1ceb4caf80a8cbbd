// Which calls of a rank may still run, and what has to stay until they have ended.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/api/device.h"
#include "runtime/core/group/copy_calls.h"
#include "runtime/core/group/pause.h"

namespace mscclc {

/// Of all executables of a rank. Thread safety: one thread at a time.
class RunningCalls {
  const std::shared_ptr<Device> device_;  // goes after the marks of its streams
  const uint32_t rank_;

 public:
  /// `rank`: for messages. Nothing can be launched on a device that is nullptr.
  RunningCalls(std::shared_ptr<Device> device, uint32_t rank)
      : device_(std::move(device)), rank_(rank) {}

  /// A call has been put on a stream.
  void launched(StreamHandle stream);
  /// There are calls on it whose end has not been waited for.
  bool is_busy(StreamHandle stream) const;
  /// All calls on a stream have ended. What has been retired stays.
  void ended(StreamHandle stream);
  /// Something that calls may still use goes when they have ended: at once, where none runs; at the
  /// next release(); or after waiting, where the communicator has gone.
  void retire(std::shared_ptr<void> used);
  /// Waits until nothing runs, and lets go of what has been retired; keeps it where that fails: for
  /// good, where the communicator has gone.
  void release();
  /// The communicator goes: there will be no more release().
  void close();

  CopyCalls copy_calls;
  Pause pause;  ///< of calls of executables that are loaded in turn

 private:
  /// Streams on which calls may still run, and that the communicator has not waited for.
  std::vector<StreamHandle> busy_streams_;
  std::vector<std::shared_ptr<void>> retired_;
  bool closed_ = false;
};

}  // namespace mscclc
