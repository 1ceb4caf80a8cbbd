#include "runtime/core/communicator/compiled_kernels/kernel_choice.h"

#include <fmt/format.h>

#include <cerrno>
#include <span>

#include "executor/compiled/name.h"
#include "ir/base/read_file.h"
#include "ir/diagnostics/first_message.h"
#include "ir/diagnostics/printable.h"
#include "runtime/support/observe/log.h"

namespace mscclc {

Result<std::unique_ptr<KernelChoice>> KernelChoice::load(const Program& plan, uint32_t rank,
                                                         const std::string& digest,
                                                         const std::string& plan_file,
                                                         Device& device) {
  const std::string architecture = device.architecture();
  if (architecture.empty()) {
    return Error{fmt::format("{} runs no kernels of plans", device.name())};
  }
  const std::string path = kernel_file(plan_file, architecture);
  const std::string name = quoted(path, path.size());
  const auto image = read_file(path, std::nullopt);
  if (!image) {
    return Error{fmt::format("cannot read {}: {}", name, file_error(errno))};
  }
  Diagnostics problems;
  auto shape = CompiledShape::of(plan, rank, problems);
  if (!shape) {
    return Error{first_message(problems, "its blocks cannot be packed")};
  }
  std::unique_ptr<KernelChoice> made(new KernelChoice(*std::move(shape), rank, path));
  auto loaded =
      device.load_kernels({reinterpret_cast<const uint8_t*>(image->data()), image->size()});
  if (!loaded) {
    return Error{
        fmt::format("{} does not take {}: {}", device.name(), name, loaded.error().text())};
  }
  made->loaded_ = *std::move(loaded);
  for (const DtypeInfo& type : dtype_table()) {
    const std::string arithmetic = made->shape_.arithmetic(type.dtype);
    if (made->kernels_.count(arithmetic) != 0) continue;
    const CompiledKernels::Kernel kernel =
        made->loaded_->find(kernel_name(digest, made->shape_, type.dtype));
    if (kernel != nullptr) made->kernels_.emplace(arithmetic, kernel);
  }
  if (!made->kernels_.empty()) return made;
  return Error{
      fmt::format("{} holds no kernel of this plan: it was made of another, or by another version "
                  "of mscclc",
                  name)};
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
        fmt::format("the interpreter runs calls that a kernel of {} could: {}",
                    quoted(file_, file_.size()), first_message(why, "the device has no room")));
  }
  return known->second;
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
