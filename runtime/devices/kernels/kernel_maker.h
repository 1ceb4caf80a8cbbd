// Makes kernels of plans with NVIDIA's compiler, in the background, and keeps them for later
// processes (docs/design/compiled_kernels.md, "Made while a job runs").
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "runtime/api/kernel_maker.h"
#include "runtime/devices/kernels/cubin_compiler.h"
#include "runtime/devices/kernels/kernel_cache.h"

namespace mscclc {

class CachingKernelMaker final : public KernelMaker {
 public:
  using FindCompiler = std::function<Result<std::unique_ptr<CubinCompiler>>()>;
  /// `find`: called once, when kernels are first ordered.
  CachingKernelMaker(FindCompiler find, KernelCache cache)
      : find_(std::move(find)), cache_(std::move(cache)) {}
  /// Waits for what it has in the background.
  ~CachingKernelMaker() override;

  std::shared_ptr<const OrderedKernels> order(const KernelOrder& order) override;
  std::string about() override;

 private:
  class Ordered;
  /// nullptr: why_none_ says why.
  const CubinCompiler* compiler();
  /// What is known of a key in this process, or something new that is still to be made.
  std::shared_ptr<Ordered> entry(const std::string& key, bool& is_new);
  /// Keeps what the cache does not, as long as there is not too much of it.
  void hold(const std::shared_ptr<Ordered>& made);
  std::optional<Result<KernelImage>> find(const std::string& key) const;
  /// Finds or compiles what no other thread or process has made meanwhile.
  void make(const std::string& key, const std::string& source, const std::string& architecture,
            const std::shared_ptr<Ordered>& made);
  /// `kept`: in the cache.
  Result<KernelImage> compile(const std::string& key, const std::string& source,
                              const std::string& architecture, bool& kept);

  void warn_once(const std::string& text);

  static constexpr size_t kMaxHeld = 64;

  const FindCompiler find_;
  const KernelCache cache_;
  std::once_flag found_, prepared_;
  std::unique_ptr<CubinCompiler> compiler_;
  std::string why_none_;
  /// Its jobs in the background hold it, too.
  const std::shared_ptr<int> jobs_ = std::make_shared<int>();
  std::mutex mutex_;  ///< of what follows
  std::map<std::string, std::weak_ptr<Ordered>> orders_;
  std::deque<std::shared_ptr<Ordered>> held_;
  std::set<std::string> warned_;
};

/// NVRTC as MSCCLC_NVRTC says, or nvcc; the cache is that of MSCCLC_KERNEL_CACHE, or the user's.
KernelMaker& process_kernel_maker();

}  // namespace mscclc
