// What has gone wrong in a communicator: the first reason, and the word through which running
// blocks learn of it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/device.h"

namespace mscclc {

/// Thread safety: from any thread.
class Failure {
 public:
  /// `word`: at least 4 bytes that host and blocks see, 0.
  explicit Failure(std::unique_ptr<Memory> word) : word_(std::move(word)) {}

  /// Sets the reason, unless there is one, and makes all waits end. From any thread. True: it was
  /// the first.
  bool set(const std::string& code, const std::string& why);
  /// Once blocks have given up and the ranks' reports are joined: what was found in the end, a line
  /// and notes. For a hang here, or one that others reported; other reasons stay as they are.
  void conclude(const std::string& verdict);
  /// True if conclude() has something to find out.
  bool is_open() const;
  /// True if this rank has ended the communicator: abort(), or something that failed here. The
  /// reason is all that is to say, then.
  bool is_own() const;
  bool happened() const { return happened_.load(std::memory_order_acquire); }
  /// True if no wait of this rank lasts any longer: after set(), or when a block has given up.
  bool waits_end() const;
  /// Adds the error, if there is one, for the program, which then knows of it. The reference is
  /// valid until the next diagnostic.
  Diagnostic* report(Diagnostics& diagnostics);
  /// The same for the log.
  Diagnostic* describe(Diagnostics& diagnostics) const;
  /// An error of the communicator reaches the program by other means, or it is the program's own.
  void note_known() { known_.store(true, std::memory_order_release); }
  bool is_known() const { return known_.load(std::memory_order_acquire); }
  /// For RankContext::abort.
  const uint32_t* word() const { return reinterpret_cast<const uint32_t*>(word_->data()); }

 private:
  const std::unique_ptr<Memory> word_;
  std::atomic<bool> happened_{false};
  std::atomic<bool> known_{false};
  mutable std::mutex mutex_;
  std::string code_, why_;
  bool concluded_ = false;
};

}  // namespace mscclc
