// The user's cache of compiled kernels: a folder with a file for each source, architecture and
// compiler, named by a digest of these and of our version. A file holds a head that its content is
// checked against, and is renamed into place when it is whole, so that processes that read and
// write at once, a full disk or a crash leave no file that is taken for another. It is machine
// code: the folder and its files count only if they are this user's and no other user may write
// there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ir/support/result.h"
#include "runtime/support/settings/cache_folder.h"
#include "runtime/support/version.h"

namespace mscclc {

/// The name of what is compiled: 64 hex digits. `version`: of ours.
std::string kernel_key(const std::string& source, const std::string& architecture,
                       const std::string& compiler, const std::string& version = kVersion);

/// Thread safety: any thread, and any number of processes.
class KernelCache {
 public:
  /// The most bytes of its files: what was used longest ago goes.
  static constexpr uint64_t kMaxBytes = uint64_t{256} << 20;

  /// `folder`: without a path nothing is found or kept.
  explicit KernelCache(CacheFolder folder, uint64_t most_bytes = kMaxBytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  /// The kernels of this key; nullopt: there are none, or none that are whole.
  [[nodiscard]] std::optional<std::string> find(const std::string& key) const;
  /// Why kernels are not kept, if they are not.
  Result<void> keep(const std::string& key, const std::string& image) const;

  /// One process makes a key's kernels, while others wait for it.
  class KeyTurn {
   public:
    KeyTurn() = default;
    ~KeyTurn();
    KeyTurn(KeyTurn&&) noexcept = default;
    KeyTurn& operator=(KeyTurn&&) = delete;

   private:
    friend class KernelCache;
    KeyTurn(Fd folder, Fd file, std::string name)
        : folder_(std::move(folder)), file_(std::move(file)), name_(std::move(name)) {}
    Fd folder_, file_;  ///< locked
    std::string name_;
  };
  /// Waits until no other process makes these kernels, `patience` at most, or until `over` returns
  /// true, which it asks now and then.
  [[nodiscard]] KeyTurn take_turn(const std::string& key, std::chrono::milliseconds patience,
                                  const std::function<bool()>& over) const;

  /// "'/home/user/.cache/mscclc/kernels'", or why there is none.
  std::string place() const;

 private:
  void make_room(const Fd& folder) const;

  const CacheFolder folder_;
  const uint64_t most_bytes_;
};

}  // namespace mscclc
