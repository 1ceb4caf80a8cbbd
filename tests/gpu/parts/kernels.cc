// Plans of a folder that 'mscclc library --kernels' has written, by their compiled kernels and by
// the interpreter: the same bits. Every plan, f32, f16 and bf16, sizes up to a message, in place or
// not. Where ranks share a GPU, it may not hold the blocks of a plan for all of them at once: such
// a plan is left out, with what the device says.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "ir/support/read_file.h"
#include "plans/format/plan_json.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/stage/graphs.h"
#include "tests/helpers/runtime/shared_value.h"
#include "tests/orders/row_batches.h"

namespace mscclc::testing {
namespace {

constexpr Dtype kDtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};

struct PlanFile {
  std::string path;
  std::shared_ptr<const Program> plan;
};

std::vector<PlanFile> plans_of(const StageOptions& options) {
  std::vector<PlanFile> plans;
  std::error_code failed;
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(options.folder, failed)) {
    const std::string name = file.path().filename();
    if (file.path().extension() != ".json" || name == "library.json") continue;
    if (name.find(options.filter) != std::string::npos) files.push_back(file.path());
  }
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) {
    Diagnostics diagnostics;
    auto plan = read_plan(read_file(file).value_or(""), file.filename(), diagnostics);
    if (!plan) fmt::print("{}: {}\n", file.string(), text(diagnostics));
    if (plan && plan->ranks.size() == options.ranks) {
      plans.push_back({file, std::make_shared<const Program>(*std::move(plan))});
    }
  }
  return plans;
}

/// The two ways to run a plan, on one rank.
class Pair {
 public:
  Pair(Communicator& communicator, const PlanFile& file)
      : communicator_(communicator), file_(file) {}

  /// Collective. "": fine. `no_room`: what the device says if it does not hold the plan's blocks.
  std::string load(uint64_t most, Dtype dtype, std::string& no_room) {
    Diagnostics diagnostics;
    for (const bool own : {false, true}) {
      executables_[own] = communicator_.load(file_.plan,
                                             {.max_bytes = most,
                                              .dtype = dtype,
                                              .zero_copy = true,
                                              .plan_file = file_.path,
                                              .compiled_kernels = own,
                                              .proof = ProofPolicy::skip},
                                             diagnostics);
      if (executables_[own] == nullptr) {
        for (const Diagnostic& d : diagnostics.all()) {
          if (d.code == "too-many-blocks") no_room = d.message;
        }
        return text(diagnostics);
      }
      memory_[own] = CallerMemory::make(communicator_, *file_.plan,
                                        {.max_bytes = most, .registered = true}, diagnostics);
      if (memory_[own] == nullptr) return text(diagnostics);
    }
    return "";
  }

  /// Some calls in a row of one size; `by_own` counts those that the plan's kernel ran. "": the
  /// same bits.
  std::string run(const RunSpec& spec, StreamHandle stream, uint64_t seed, uint64_t& by_own) {
    Diagnostics diagnostics;
    std::vector<uint8_t> output[2];
    const uint32_t element = info(spec.dtype).bytes;
    for (const bool own : {false, true}) {
      CheckedCall call(communicator_, *executables_[own], *memory_[own], spec);
      if (!call.bind(diagnostics)) return text(diagnostics);
      by_own += own && call.has_compiled_kernel() ? 1 : 0;
      for (uint64_t k = 0; k < kCalls; ++k) {
        const auto input = random_floats(call.bytes(kInput) / element, element,
                                         (seed * kCalls + k) * 64 + communicator_.rank());
        std::vector<uint8_t> out(call.bytes(kOutput));
        if (!call.fill(seed + k, diagnostics) ||  // poisons the output
            !call.write_input(input.data(), diagnostics) || !call.launch(stream, diagnostics) ||
            !communicator_.synchronize(stream, diagnostics) ||
            !call.read_output(out.data(), diagnostics)) {
          return text(diagnostics);
        }
        output[own].insert(output[own].end(), out.begin(), out.end());
      }
    }
    if (output[0] == output[1]) return "";
    size_t at = 0;
    while (output[0][at] == output[1][at]) ++at;
    return fmt::format("byte {} of {}: the interpreter gives {:02x}, the plan's kernel {:02x}", at,
                       output[0].size(), output[0][at], output[1][at]);
  }

 private:
  static constexpr uint64_t kCalls = 3;  // both copies of scratch, and the first again

  Communicator& communicator_;
  const PlanFile& file_;
  std::unique_ptr<CallerMemory> memory_[2];
  std::unique_ptr<Executable> executables_[2];  ///< end first
};

/// Collective: of what the ranks say, the first that is something, for all of them.
bool agree(Communicator& communicator, std::string& said, Diagnostics& diagnostics) {
  std::vector<std::vector<uint8_t>> all;
  const std::span<const uint8_t> own(reinterpret_cast<const uint8_t*>(said.data()), said.size());
  if (!communicator.bootstrap().all_gather(own, "agree on a plan", all, diagnostics)) return false;
  const auto first = std::ranges::find_if(all, [](const auto& text) { return !text.empty(); });
  if (first != all.end()) said.assign(first->begin(), first->end());
  return true;
}

void leave_out(Communicator& communicator, const PlanFile& file, const std::string& why,
               SharedValue& left_out) {
  if (communicator.rank() != 0) return;
  fmt::print("{}: LEFT OUT, {}\n", std::filesystem::path(file.path).filename().string(), why);
  std::fflush(stdout);
  ++left_out.at();
}

std::string run_plan(const StageOptions& options, Communicator& communicator, const PlanFile& file,
                     SharedValue& no_room) {
  Diagnostics diagnostics;
  const Stream stream(communicator.device(), diagnostics);
  if (stream.get() == nullptr) return text(diagnostics);
  const Program& plan = *file.plan;
  std::vector<bool> placements{plan.contract.in_place == InPlace::yes};
  if (plan.contract.in_place == InPlace::either && plan.contract.can_alias()) {
    placements = {false, true};
  }
  uint64_t calls = 0, by_own = 0, seed = options.seed;
  for (const Dtype dtype : kDtypes) {
    // What moves data only has one kernel for all types, and two types have odd sizes of both
    // kinds.
    if (dtype == Dtype::bf16 && !plan.contract.reduces()) continue;
    Pair pair(communicator, file);
    std::string why;
    const std::string fault = pair.load(options.most, dtype, why);
    const bool talked = agree(communicator, why, diagnostics);
    if (!talked) return fault.empty() ? text(diagnostics) : fault;
    if (!why.empty()) {
      leave_out(communicator, file, why, no_room);
      return "";
    }
    if (!fault.empty()) return fault;
    for (uint64_t bytes = 256; bytes <= options.most; bytes *= 2) {
      for (const uint64_t size : {bytes, bytes + bytes / 2, bytes - info(dtype).bytes}) {
        if (size > options.most) continue;
        const uint64_t part = Chunking::part_for_message(plan.contract, size, info(dtype).bytes);
        const Chunking chunking(plan.contract, part, plan.launch.align);
        if (part == 0 || (plan.contract.even_only && !chunking.even())) continue;
        for (const bool in_place : placements) {
          const RunSpec spec{
              .bytes = chunking.message_bytes(), .dtype = dtype, .in_place = in_place};
          const std::string fault = pair.run(spec, stream.get(), ++seed, by_own);
          if (!fault.empty()) return fmt::format("{}: {}", mscclc::text(spec), fault);
          ++calls;
        }
      }
    }
    // Freeing memory waits for all that runs on the GPU, and holds up launches of other threads: of
    // ranks that share it none may free before the calls of all have ended.
    if (!communicator.bootstrap().barrier("have run all calls", diagnostics)) {
      return text(diagnostics);
    }
  }
  // Of all ranks, as blocks of one may have more to do.
  std::string own = by_own > 0 ? "some" : "";
  if (!agree(communicator, own, diagnostics)) return text(diagnostics);
  if (own.empty()) {
    leave_out(communicator, file,
              fmt::format("as none of its {} calls ran by the plan's kernel", calls), no_room);
  } else if (communicator.rank() == 0) {
    fmt::print("{}: {} calls, {} of them by the plan's kernel, the same bits\n",
               std::filesystem::path(file.path).filename().string(), calls, by_own);
    std::fflush(stdout);
  }
  return "";
}

}  // namespace

bool check_kernels(const StageOptions& options) {
  const std::vector<PlanFile> plans = plans_of(options);
  SharedValue no_room;  // how many are left out
  if (!no_room.mapped()) std::abort();
  Tally tally = run_series(
      options, plans.size(),
      [&](Communicator& communicator, size_t i) {
        return run_plan(options, communicator, plans[i], no_room);
      },
      [&](size_t i, const std::string& fault) {
        fmt::print("{}: FAILED\n{}\n", plans[i].path, fault);
        std::fflush(stdout);
      });
  tally.right -= no_room.at();
  fmt::print("kernels at {} on {} GPUs: {} plans right, {} wrong, {} left out{}\n", text(options),
             options.gpus, tally.right, tally.wrong, no_room.at().load(), left_out(tally.late));
  return tally.wrong == 0 && tally.right > 0;
}

}  // namespace mscclc::testing
