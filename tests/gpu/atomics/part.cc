// The part of gpu_check that lets network devices add to the memory of GPUs.
#include <fmt/format.h>

#include <vector>

#include "executor/shared_atomics.h"
#include "runtime/devices/cuda/internode/verbs_memory.h"
#include "runtime/devices/cuda/memory/memory.h"
#include "tests/gpu/atomics/remote_adds.h"
#include "tests/gpu/parts.h"

namespace mscclc::testing {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr uint64_t kBytes = AddWords::kCount * sizeof(uint64_t);
constexpr uint64_t kAdds = 1000;
constexpr uint32_t kPairs = 4;

/// What has come of one memory. Neither: all was right.
struct Tried {
  std::string fault, left_out;
};

std::string first(const Diagnostics& diagnostics) {
  return diagnostics.all().empty() ? "" : diagnostics.all().front().message;
}

/// Memory of a GPU, read by copies.
class GpuWords {
 public:
  /// nullptr: reported.
  static std::unique_ptr<GpuWords> make(int ordinal, Diagnostics& diagnostics) {
    const cuda::Driver* const driver = cuda::load_driver(diagnostics);
    if (driver == nullptr) return nullptr;
    std::unique_ptr<GpuWords> made(new GpuWords);
    made->context_ = cuda::PrimaryContext::open(*driver, ordinal, diagnostics);
    if (made->context_ == nullptr) return nullptr;
    made->stream_ = cuda::OwnStream::create(made->context_, diagnostics, true);
    if (made->stream_ == nullptr) return nullptr;
    made->words_ = cuda::Allocator(made->context_, *made->stream_, false)
                       .allocate(kBytes, "words", diagnostics);
    made->copy_ = cuda::allocate_pinned(made->context_, sizeof(uint64_t), "a word", diagnostics);
    return made->words_ == nullptr || made->copy_ == nullptr ? nullptr : std::move(made);
  }

  const cuda::SharedContext& context() const { return context_; }
  uint8_t* data() const { return words_->data(); }
  std::string pci_number() const {
    char text[32] = {};
    const auto result =
        context_->driver().DeviceGetPCIBusId(text, sizeof text, context_->ordinal());
    return result == cuda::abi::kSuccess ? text : "";
  }
  std::optional<uint64_t> read(uint64_t index) const {
    const cuda::CurrentContext current(*context_);
    const cuda::Driver& driver = context_->driver();
    const auto from = cuda::address_of(data()) + index * sizeof(uint64_t);
    if (!current.is_set() ||
        driver.MemcpyAsync(cuda::address_of(copy_->data()), from, sizeof(uint64_t),
                           stream_->get()) != cuda::abi::kSuccess ||
        driver.StreamSynchronize(stream_->get()) != cuda::abi::kSuccess) {
      return std::nullopt;
    }
    return load_acquire<uint64_t>(copy_->data());
  }

 private:
  GpuWords() = default;

  cuda::SharedContext context_;
  std::unique_ptr<cuda::OwnStream> stream_;
  std::unique_ptr<Memory> words_, copy_;
};

/// The device that lanes would take; nullptr: there is none, `tried` says why.
std::shared_ptr<verbs::Adapter> open_adapter(const std::string& gpu, Tried& tried) {
  Diagnostics diagnostics;
  auto options = verbs::read_verbs_options(diagnostics);
  auto net = net::SocketNet::start({.interface = "=lo"}, diagnostics);
  if (!options || net == nullptr) {
    tried.fault = first(diagnostics);
    return nullptr;
  }
  options->gpu = gpu;
  options->data_direct = !gpu.empty();
  auto adapter = verbs::Adapter::start(*options, std::move(net), diagnostics);
  if (adapter == nullptr) tried.left_out = first(diagnostics);
  return adapter;
}

Tried try_host() {
  Tried tried;
  const auto adapter = open_adapter("", tried);
  if (adapter == nullptr) return tried;
  std::vector<uint64_t> data(AddWords::kCount);
  const auto region = verbs::MemoryRegion::make(adapter->domain(), data.data(), kBytes, kAccess);
  if (!region) return {region.error().text(), ""};
  const AddWords words{reinterpret_cast<uint64_t>(data.data()), (*region)->remote_key(),
                       [&](uint64_t index) { return load_acquire<uint64_t>(&data[index]); }};
  return {check_adds(*adapter, words, kAdds, kPairs), ""};
}

Tried try_gpu(int ordinal) {
  Diagnostics diagnostics;
  const auto gpu = GpuWords::make(ordinal, diagnostics);
  if (gpu == nullptr) return {first(diagnostics), ""};
  Tried tried;
  const auto adapter = open_adapter(gpu->pci_number(), tried);
  if (adapter == nullptr) return tried;
  const cuda::VerbsMemory memory(gpu->context(), adapter, true);
  const auto direct = memory.make_direct(gpu->data(), kBytes, kAccess);
  if (!direct) {
    return {"", fmt::format("{} does not reach its memory: {}", adapter->port().context->name(),
                            direct.error().text())};
  }
  const AddWords words{direct->address, direct->region->remote_key(),
                       [&](uint64_t index) { return gpu->read(index); }};
  return {check_adds(*adapter, words, kAdds, kPairs), ""};
}

}  // namespace

bool check_remote_adds(const StageOptions& options) {
  uint32_t right = 0, left_out = 0;
  const uint32_t count = options.host ? 1 : options.gpus;
  for (uint32_t i = 0; i < count; ++i) {
    const auto place = options.host ? std::string("host memory") : fmt::format("cuda:{}", i);
    const Tried outcome = options.host ? try_host() : try_gpu(static_cast<int>(i));
    if (!outcome.left_out.empty()) {
      ++left_out;
      fmt::print("{}: nothing was tried: {}\n", place, outcome.left_out);
    } else if (!outcome.fault.empty()) {
      fmt::print("{}: {}\n", place, outcome.fault);
    } else {
      ++right;
      fmt::print("{}: {} adds right\n", place, kAdds * (1 + kPairs));
    }
  }
  fmt::print("adds by network devices: {} right, {} wrong, {} not tried\n", right,
             count - right - left_out, left_out);
  return right + left_out == count;
}

}  // namespace mscclc::testing
