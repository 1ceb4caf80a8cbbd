// A GPU's primary context, which the process shares with all that use the CUDA runtime there, and
// the guard that makes it current for a while. A new context costs hundreds of megabytes of the
// GPU, so none is made except these, and none on a GPU that was not asked for.
#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/devices/cuda/driver/driver.h"

namespace mscclc::cuda {

/// Keeps the primary context of GPU `ordinal` alive. All memory, streams and mappings hold one, so
/// that they may be destroyed in any order. Immutable: any thread may use it.
class PrimaryContext {
 public:
  /// nullptr: reported (no-such-device, cuda).
  [[nodiscard]] static std::shared_ptr<const PrimaryContext> open(const Driver& driver, int ordinal,
                                                                  Diagnostics& diagnostics);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  const Driver& driver() const { return driver_; }
  int ordinal() const { return ordinal_; }
  abi::Context handle() const { return handle_; }
  /// The model, "NVIDIA H200".
  const std::string& model() const { return model_; }
  /// An attribute of the GPU; 0 if the driver does not know it.
  int attribute(abi::Attribute attribute) const { return attributes_.at(attribute); }
  /// succeeded() of this driver.
  [[nodiscard]] bool ok(abi::Result result, const std::string& attempt,
                        Diagnostics& diagnostics) const {
    return succeeded(driver_, result, attempt, diagnostics);
  }
  /// The same where calls are made often: attempt() gives the text.
  template <std::invocable Attempt>
  [[nodiscard]] bool ok(abi::Result result, Attempt attempt, Diagnostics& diagnostics) const {
    return result == abi::kSuccess || succeeded(driver_, result, attempt(), diagnostics);
  }
  /// Waits until all work on all streams of the GPU has ended. While one of them is captured the
  /// driver does not: it breaks the capture, whatever the calling thread's mode. That is an error,
  /// which says what to do. REQUIRES: the context is current.
  [[nodiscard]] bool wait_for_all(const std::string& attempt, Diagnostics& diagnostics) const;

 private:
  PrimaryContext(const Driver& driver, int ordinal) : driver_(driver), ordinal_(ordinal) {}
  [[nodiscard]] bool read_attributes(Diagnostics& diagnostics);

  const Driver& driver_;
  const int ordinal_;
  abi::Context handle_ = nullptr;
  std::string model_;
  std::map<abi::Attribute, int> attributes_;  ///< all of abi.h
};

/// Keeps the contexts of the GPUs that a process has opened, once and for all.
///
/// Giving back the last reference to a primary context ends it, with all that is in it: also
/// what others have there, such as the CUDA runtime its kernels, and what other GPUs have mapped of
/// its memory. So a process whose ranks come and go as threads must not let go of one between them;
/// the CUDA runtime does not either.
class ContextKeeper {
 public:
  /// Opens GPU `ordinal` if that has not been done. False: reported.
  [[nodiscard]] bool keep(const Driver& driver, int ordinal, Diagnostics& diagnostics);

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<const PrimaryContext>> kept_;
};

/// The device guard: makes a context current for this thread, and at its end what was current
/// before. Costs nothing much where the context is current already.
class CurrentContext {
 public:
  explicit CurrentContext(const PrimaryContext& context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  /// False if it could not be made current: reported.
  [[nodiscard]] bool is_set(Diagnostics& diagnostics) const;
  /// The same without a report, for teardown.
  bool is_set() const { return result_ == abi::kSuccess; }

 private:
  const PrimaryContext& context_;
  abi::Result result_ = abi::kSuccess;
  bool pushed_ = false;
};

/// Lets the calling thread do what a capture forbids it, its own or, in global mode, another
/// thread's: all that may wait for the device, such as allocations, mappings and the ends of them.
/// Until the guard's end. What is captured itself (launches, copies on a stream) needs none.
class OutsideCapture {
 public:
  explicit OutsideCapture(const Driver& driver);
  ~OutsideCapture();
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  const Driver& driver_;
  int mode_ = abi::kCaptureModeRelaxed;
  bool exchanged_;
};

}  // namespace mscclc::cuda
