#include "runtime/devices/cuda/driver/seen_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "ir/diagnostics/first_message.h"
#include "runtime/devices/cuda/driver/driver.h"

namespace mscclc::cuda {
namespace {

namespace fs = std::filesystem;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "nvidia3", but not "nvidiactl".
bool is_gpu_file(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
         std::ranges::all_of(name.substr(kPrefix.size()), is_digit);
}

/// Entries of a folder that `counts` takes; nullopt: it cannot be read.
template <class Counts>
std::optional<size_t> count_in(const std::string& folder, const Counts& counts) {
  std::error_code error;
  size_t count = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (counts(at->path().filename().string())) ++count;
  }
  return error ? std::nullopt : std::optional(count);
}

/// The driver's own list is there once its module is loaded. Sandboxes may have only the files by
/// which GPUs are opened; without any, the driver may have other ways (WSL, Tegra).
std::optional<size_t> gpus_of_machine(const std::string& root) {
  const auto listed = count_in(root + "/proc/driver/nvidia/gpus", [](const auto&) { return true; });
  if (listed) return listed;
  const auto files = count_in(root + "/dev", is_gpu_file);
  return files && *files > 0 ? files : std::nullopt;
}

/// An entry of CUDA_VISIBLE_DEVICES: a number below `all`, or a GPU's UUID. The first that is none
/// ends the list.
bool names_gpu(std::string_view entry, size_t all) {
  if (entry.starts_with("GPU-")) return true;
  return !entry.empty() && is_digit(entry.front()) &&
         std::strtoull(std::string(entry).c_str(), nullptr, 10) < all;
}

}  // namespace

std::optional<size_t> most_gpus(const std::string& root, const char* visible) {
  const auto all = gpus_of_machine(root);
  if (!all || visible == nullptr) return all;
  std::string_view rest = visible;
  if (rest.find("MIG-") != rest.npos) return std::nullopt;
  size_t chosen = 0;
  while (chosen < *all) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const size_t end = std::min(rest.find(','), rest.size());
    if (!names_gpu(rest.substr(0, end), *all)) break;
    ++chosen;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return chosen;
}

std::string why_not_seen(int ordinal) {
  Diagnostics problems;
  const Driver* const driver = find_driver(problems);
  if (driver == nullptr) return first_message(problems);
  int count = 0;  // which the driver says if anything here has initialised it
  const auto most = driver->DeviceGetCount(&count) == abi::kSuccess
                        ? std::optional(static_cast<size_t>(count))
                        : most_gpus("", std::getenv("CUDA_VISIBLE_DEVICES"));
  if (!most || static_cast<size_t>(ordinal) < *most) return "";
  return fmt::format("there is no cuda:{}: this process sees {} GPUs", ordinal, *most);
}

}  // namespace mscclc::cuda
