#include "runtime/devices/kernels/kernel_maker.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "executor/compiled/emit.h"
#include "ir/diagnostics/first_message.h"
#include "ir/diagnostics/printable.h"
#include "runtime/devices/kernels/background_thread.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/observe/log.h"
#include "runtime/support/process/per_process.h"

namespace mscclc {
namespace {

/// What a compiler says, as one line.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text.substr(0, 300)) line += c == '\n' ? ' ' : c;
  return printable_line(line);
}

}  // namespace

class CachingKernelMaker::Ordered final : public OrderedKernels {
 public:
  const Result<KernelImage>* result() const override {
    return done_.load(std::memory_order_acquire);
  }
  /// The first that finds it settles it, and others wait; unless `find` gives nothing.
  template <class Find>
  void try_once(const Find& find) {
    const std::lock_guard one(making_);
    if (result_) return;
    std::optional<Result<KernelImage>> found = find();
    if (!found) return;
    result_ = std::move(found);
    done_.store(&*result_, std::memory_order_release);
  }

 private:
  std::mutex making_;
  std::optional<Result<KernelImage>> result_;
  std::atomic<const Result<KernelImage>*> done_{nullptr};
};

CachingKernelMaker::~CachingKernelMaker() {
  while (jobs_.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

const CubinCompiler* CachingKernelMaker::compiler() {
  std::call_once(found_, [this] {
    auto found = find_();
    if (found) {
      compiler_ = *std::move(found);
    } else {
      why_none_ = found.error().text();
    }
  });
  return compiler_.get();
}

std::string CachingKernelMaker::about() {
  const CubinCompiler* const found = compiler();
  if (found == nullptr) return fmt::format("not compiled: {}", why_none_);
  return fmt::format("compiled by {} ({}), kept {}", found->version(),
                     printable_line(found->file()), cache_.place());
}

std::shared_ptr<CachingKernelMaker::Ordered> CachingKernelMaker::entry(const std::string& key,
                                                                       bool& is_new) {
  const std::lock_guard lock(mutex_);
  std::erase_if(orders_, [](const auto& order) { return order.second.expired(); });
  const auto known = orders_.find(key);
  is_new = known == orders_.end();
  if (!is_new) {
    if (auto found = known->second.lock()) return found;
  }
  is_new = true;
  auto made = std::make_shared<Ordered>();
  orders_[key] = made;
  return made;
}

void CachingKernelMaker::hold(const std::shared_ptr<Ordered>& made) {
  const std::lock_guard lock(mutex_);
  held_.push_back(made);
  if (held_.size() > kMaxHeld) held_.pop_front();
}

std::shared_ptr<const OrderedKernels> CachingKernelMaker::order(const KernelOrder& order) {
  const auto failed = [](const std::string& why) {
    const auto made = std::make_shared<Ordered>();
    made->try_once([&] { return Error{why}; });
    return made;
  };
  const CubinCompiler* const compiler = this->compiler();
  if (compiler == nullptr) return failed(why_none_);
  Diagnostics problems;
  const auto source = write_kernels(*order.plan, order.digest, usual_kernel_dtypes(), problems);
  if (!source) return failed(first_message(problems, "it can have none"));
  const std::string text = *source + std::string(kernel_header()) + std::string(standard_header());
  const std::string key = kernel_key(text, order.architecture, compiler->version());
  bool is_new = false;
  const std::shared_ptr<Ordered> made = entry(key, is_new);
  if (is_new) made->try_once([&] { return find(key); });
  if (order.wait) {
    make(key, *source, order.architecture, made);
    return made;
  }
  if (!is_new || made->result() != nullptr) return made;
  // A compilation says its error.
  std::call_once(prepared_, [&] { (void)compiler->prepare(order.architecture); });
  const auto taken = background_thread().add(
      [this, key, source = *source, made, jobs = jobs_, architecture = order.architecture] {
        make(key, source, architecture, made);
      });
  if (!taken) made->try_once([&] { return taken.error(); });
  return made;
}

/// In the cache.
std::optional<Result<KernelImage>> CachingKernelMaker::find(const std::string& key) const {
  auto kept = cache_.find(key);
  if (!kept) return std::nullopt;
  return KernelImage{*std::move(kept), fmt::format("kept {}, {}", cache_.place(), key)};
}

void CachingKernelMaker::make(const std::string& key, const std::string& source,
                              const std::string& architecture,
                              const std::shared_ptr<Ordered>& made) {
  bool kept = true;
  made->try_once([&]() -> std::optional<Result<KernelImage>> {
    std::optional<Result<KernelImage>> found;
    const KernelCache::KeyTurn turn = cache_.take_turn(key, kOtherCompilation, [&] {
      found = find(key);
      return found.has_value() || background_thread().why_not().has_value();
    });
    if (!found) found = find(key);  // another process has made them
    return found ? std::move(found) : compile(key, source, architecture, kept);
  });
  if (!kept) hold(made);
}

/// One line for each thing that is wrong, in a process.
void CachingKernelMaker::warn_once(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (!warned_.insert(text).second) return;
  }
  log_always(LogArea::load, std::nullopt, text);
}

Result<KernelImage> CachingKernelMaker::compile(const std::string& key, const std::string& source,
                                                const std::string& architecture, bool& kept) {
  kept = false;
  if (auto why = background_thread().why_not()) return *std::move(why);
  const auto begin = std::chrono::steady_clock::now();
  auto compiled = compiler_->compile(source, architecture);
  if (!compiled) {
    warn_once(
        fmt::format("kernels of plans are not compiled, and the interpreter runs them: "
                    "{} for {}: {}",
                    compiler_->version(), architecture, one_line(compiled.error().text())));
    return compiled.error();
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  const auto done = cache_.keep(key, *compiled);
  kept = static_cast<bool>(done);
  log(LogLevel::info, LogArea::load, std::nullopt,
      fmt::format("{} has compiled {} bytes of kernels in {:.0f} ms, {}", compiler_->version(),
                  compiled->size(), took.count(),
                  kept ? fmt::format("kept {}, {}", cache_.place(), key)
                       : fmt::format("not kept {}: {}", cache_.place(), done.error().text())));
  return KernelImage{*std::move(compiled), "compiled by " + compiler_->version()};
}

namespace {

Result<std::unique_ptr<CubinCompiler>> find_process_compiler() {
  const Environment environment = Environment::of_process();
  auto found = find_compiler(environment);
  if (!found && names_nvrtc(environment)) {
    log_always(
        LogArea::load, std::nullopt,
        fmt::format("kernels of plans are not compiled: {}", one_line(found.error().text())));
  }
  return found;
}

/// A wrong value of a variable is check_settings()'s.
CacheFolder process_kernel_folder() {
  Diagnostics reported;
  return cache_folder(Environment::of_process(), Variable::MSCCLC_KERNEL_CACHE, "kernels", reported)
      .value_or(CacheFolder{});
}

struct ProcessMaker {
  CachingKernelMaker maker{find_process_compiler, KernelCache(process_kernel_folder())};
};

}  // namespace

KernelMaker& process_kernel_maker() { return process_wide<ProcessMaker>().maker; }

}  // namespace mscclc
