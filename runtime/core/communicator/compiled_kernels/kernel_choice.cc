#include "runtime/core/communicator/compiled_kernels/kernel_choice.h"

#include <fmt/format.h>

#include <cerrno>

#include "executor/compiled/name.h"
#include "ir/diagnostics/first_message.h"
#include "ir/diagnostics/printable.h"
#include "ir/support/read_file.h"
#include "runtime/support/observe/log.h"

namespace mscclc {

Result<std::unique_ptr<KernelChoice>> KernelChoice::of(const Program& plan, uint32_t rank,
                                                       std::string digest) {
  Diagnostics problems;
  auto shape = CompiledShape::of(plan, rank, problems);
  if (!shape) return Error{first_message(problems, "its blocks cannot be packed")};
  return std::unique_ptr<KernelChoice>(
      new KernelChoice(*std::move(shape), rank, std::move(digest)));
}

Result<void> KernelChoice::load_file(const std::string& plan_file, Device& device) {
  const std::string path = kernel_file(plan_file, device.architecture());
  const std::string name = quoted(path, path.size());
  const auto image = read_file(path, std::nullopt);
  if (!image) return Error{fmt::format("cannot read {}: {}", name, file_error(errno))};
  return load(*image, name, device);
}

Result<void> KernelChoice::load(std::string_view image, const std::string& from, Device& device) {
  auto loaded = device.load_kernels({reinterpret_cast<const uint8_t*>(image.data()), image.size()});
  if (!loaded) {
    return Error{
        fmt::format("{} does not take {}: {}", device.name(), from, loaded.error().text())};
  }
  std::map<std::string, CompiledKernels::Kernel> kernels;
  for (const DtypeInfo& type : dtype_table()) {
    const std::string arithmetic = shape_.arithmetic(type.dtype);
    if (kernels.count(arithmetic) != 0) continue;
    const CompiledKernels::Kernel kernel =
        (*loaded)->find(kernel_name(digest_, shape_, type.dtype));
    if (kernel != nullptr) kernels.emplace(arithmetic, kernel);
  }
  if (kernels.empty()) {
    return Error{fmt::format(
        "{} holds no kernel of this plan: it was made of another, or by another version of mscclc",
        from)};
  }
  kernels_ = std::move(kernels);
  loaded_ = *std::move(loaded);
  from_ = from;
  return {};
}

std::string KernelChoice::description(const Program& plan) const {
  const auto apart = why_rows_apart(plan);
  return apart ? fmt::format("{}; {}", from_, *apart) : from_;
}

// A kernel of a plan may take more registers than the interpreter's, so that fewer of its blocks
// fit: where several ranks share a GPU that can be too few.
uint32_t KernelChoice::most_blocks(CompiledKernels::Kernel kernel,
                                   const device::LaunchPlan& launch) {
  const auto [known, is_new] = fitting_.try_emplace(kernel, 0);
  if (!is_new) return known->second;
  Diagnostics why;
  known->second = loaded_->fits(kernel, launch, why).value_or(0);
  if (known->second == 0) {
    log(LogLevel::info, LogArea::load, rank_,
        fmt::format("the interpreter runs calls that a kernel of {} could: {}", from_,
                    first_message(why, "the device has no room")));
  }
  return known->second;
}

std::string KernelChoice::why_not(const BlockPrograms& programs, const device::LaunchPlan& launch) {
  const std::string_view type = info(launch.dtype).name;
  const auto kernel = kernels_.find(shape_.arithmetic(launch.dtype));
  if (kernel == kernels_.end()) return fmt::format("{} has none of {}", from_, type);
  if (!shape_.takes(programs, launch.dtype, launch.accumulate, launch.reduce)) {
    return fmt::format("they take sums and averages, added up in {}",
                       info(info(launch.dtype).accumulate).name);
  }
  device::LaunchPlan placed = launch;
  placed.threads = shape_.threads();
  if (most_blocks(kernel->second, placed) == 0) {
    return fmt::format("{} blocks of {} threads do not fit on the device at once", launch.blocks,
                       placed.threads);
  }
  return "its steps are others than those of the code";
}

void KernelChoice::choose(const BlockPrograms& programs, device::LaunchPlan& launch,
                          CompiledCall& call) {
  call.kernel = nullptr;
  call.lines_at = nullptr;
  const auto kernel = kernels_.find(shape_.arithmetic(launch.dtype));
  if (launch.blocks != shape_.blocks() || kernel == kernels_.end()) return;
  if (!shape_.takes(programs, launch.dtype, launch.accumulate, launch.reduce)) return;
  device::LaunchPlan placed = launch;
  placed.threads = shape_.threads();
  placed.most_blocks = most_blocks(kernel->second, placed);
  if (placed.most_blocks == 0 || !shape_.fill(programs, call.lines)) return;
  call.kernel = kernel->second;
  launch = placed;
}

}  // namespace mscclc
