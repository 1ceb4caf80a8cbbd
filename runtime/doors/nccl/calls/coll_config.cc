#include "runtime/doors/nccl/calls/coll_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "ir/diagnostics/printable.h"
#include "ir/support/precondition.h"
#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/functions.h"

namespace mscclc::nccl {
namespace {

/// ncclConfigExt_t: an option of some vendor's library. NCCL ignores all.
struct Option {
  const Option* next;
  int vendor, number;
  const char* text;
};
/// Ours: "msc".
constexpr int kVendor = 0x6d7363, kOrderOption = 1;
/// No list is as long: it leads back to itself.
constexpr int kMaxOptions = 4096;

/// As of 2.32. All but the event is there since 2.31.
struct CollConfig {
  size_t size;
  unsigned int magic, version;
  const Option* options;
  int min_ctas, max_ctas, nvls_ctas, cluster;
  const char* algorithms;
  int force_algorithms, cta_policy;
  uint64_t profiler_tag;
  cudaEvent_t launch_completion;
};
constexpr size_t kLeastBytes = offsetof(CollConfig, launch_completion);
constexpr unsigned kVersionOfEvent = 23200;

/// More than any version has.
constexpr size_t kMaxBytes = 4096;
/// NCCL_CTA_POLICY_EFFICIENCY and _ZERO.
constexpr int kMaxCtaPolicy = 3;

/// For a copy: nothing of the caller's is read after the call.
std::vector<Option> copy_options(const Option* first) {
  std::vector<Option> copies;
  for (const Option* option = first; option != nullptr; option = option->next) {
    copies.push_back(*option);
  }
  for (size_t i = 0; i + 1 < copies.size(); ++i) copies[i].next = &copies[i + 1];
  return copies;
}

ncclResult_t read_options(const char* function, const Option* option, NcclCall& call) {
  const auto refuse = [&](const char* why) {
    return fail(ncclInvalidArgument, fmt::format("{}: config's ext {}", function, why));
  };
  for (int count = 0; option != nullptr; option = option->next) {
    if (++count > kMaxOptions) return refuse("is a list without an end");
    if (option->vendor != kVendor) continue;
    if (option->number != kOrderOption) return refuse("has an option that mscclc does not know");
    if (call.order) return refuse("has two orders");
    const ncclResult_t result = read_order(function, option->text, call.order);
    if (result != ncclSuccess) return result;
    call.asks_for_order = "its configuration";
  }
  return ncclSuccess;
}

template <class Field>
void put(std::vector<uint8_t>& bytes, size_t offset, const Field& field) {
  std::memcpy(bytes.data() + offset, &field, sizeof field);
}

}  // namespace

/// A configuration of any version, which points into itself; values of other vendors'
/// options only they can read.
struct KeptConfig {
  KeptConfig(const uint8_t* first, size_t size, const CollConfig& read)
      : bytes(first, first + size), options(copy_options(read.options)) {
    if (read.algorithms != nullptr) {
      algorithms = read.algorithms;
      put(bytes, offsetof(CollConfig, algorithms), algorithms.c_str());
    }
    if (!options.empty()) put(bytes, offsetof(CollConfig, options), options.data());
  }
  KeptConfig(const KeptConfig&) = delete;
  KeptConfig& operator=(const KeptConfig&) = delete;

  std::vector<uint8_t> bytes;
  std::string algorithms;
  std::vector<Option> options;
};

CollConfig read_config(const uint8_t* bytes, size_t size) {
  CollConfig read{};
  std::memcpy(&read, bytes, std::min(size, sizeof read));
  if (read.version < kVersionOfEvent) read.launch_completion = nullptr;
  return read;
}

ncclResult_t read_order(const char* function, const char* text, std::optional<SumOrder>& order) {
  const std::string_view name = text == nullptr ? "" : text;
  order = find_sum_order(name);
  if (order) return ncclSuccess;
  return fail(ncclInvalidArgument, fmt::format("{}: there is no order {}; there are {}", function,
                                               quoted(name), sum_order_names()));
}

ncclResult_t copy_config(const char* function, const ncclCollConfig_t* config, NcclCall& call) {
  if (config == nullptr) return ncclSuccess;
  size_t size = 0;
  std::memcpy(&size, config, sizeof size);
  const auto* const first = reinterpret_cast<const uint8_t*>(config);
  const bool readable = size >= kLeastBytes && size <= kMaxBytes;
  const CollConfig read = readable ? read_config(first, size) : CollConfig{};
  if (read.magic != MSCCLC_NCCL_MAGIC) {
    return fail(ncclInvalidArgument,
                fmt::format("{}: config was not made with NCCL_COLLCONFIG_INITIALIZER", function));
  }
  // NCCL ignores numbers that are out of range.
  if (read.max_ctas > 0) call.most_blocks = static_cast<uint32_t>(read.max_ctas);
  if (read.cta_policy >= 0 && read.cta_policy <= kMaxCtaPolicy) call.cta_policy = read.cta_policy;
  call.profiler_tag = read.profiler_tag;
  call.launch_completion = read.launch_completion;
  const ncclResult_t result = read_options(function, read.options, call);
  if (result == ncclSuccess) call.config = std::make_shared<KeptConfig>(first, size, read);
  return result;
}

bool asks_for_algorithm(const NcclCall& call) {
  return call.config != nullptr && !call.config->algorithms.empty();
}

bool takes_config(const RealNccl& real, const NcclCall& call) {
  const CollectiveFunction* const function = function_of(call.kind);
  const bool records = real.version >= static_cast<int>(kVersionOfEvent);
  return call.config != nullptr && function != nullptr && call.reduction == nullptr &&
         (records || call.launch_completion == nullptr) && function->takes_config_in(real);
}

ncclResult_t call_with_config(const RealNccl& real, ncclComm_t comm, const NcclCall& call) {
  precondition(takes_config(real, call));
  const auto* const config = reinterpret_cast<const ncclCollConfig_t*>(call.config->bytes.data());
  return function_of(call.kind)->call_with_config(real, comm, call, nccl_op_of(call.op), config);
}

}  // namespace mscclc::nccl
