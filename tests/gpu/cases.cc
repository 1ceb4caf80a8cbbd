#include "tests/gpu/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "compiler/compile.h"
#include "ir/support/read_file.h"
#include "passes/prove/prove.h"
#include "plans/format/plan_json.h"
#include "tests/engines/coinciding_programs.h"

namespace mscclc::testing {
namespace {

bool passes(const StageOptions& options, const std::string& name) {
  return name.find(options.filter) != std::string::npos;
}

Result<Case> compiled(std::string_view name, const Defines& defines) {
  const CompiledWorld world(name, defines);
  if (!world.errors().empty()) return Error{world.errors()};
  return Case{fmt::format("{} {}", name, mscclc::text(defines)),
              std::make_shared<const Program>(world.program()), world.dtypes(), world.reductions(),
              world.in_place()};
}

// What the prover refuses has results that depend on the schedule (docs/design/verification.md says
// why, tests/mscclpp_plans/verdicts_test.cc demonstrates it): on GPUs, too, some go wrong, so no
// result of theirs says anything of the runtime.
void add_peers(const StageOptions& options, std::vector<Case>& cases,
               std::vector<std::string>& refused) {
  std::vector<std::filesystem::path> files;  // in one order: a seed means the same everywhere
  for (const auto& file : std::filesystem::directory_iterator("tests/mscclpp_plans")) {
    files.push_back(file.path());
  }
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) {
    const std::string name = file.filename();
    if (file.extension() != ".json" || !passes(options, name)) continue;
    Diagnostics diagnostics;
    auto plan = read_plan(read_file(file).value(), name, diagnostics);
    if (!plan || plan->ranks.size() != options.ranks) continue;
    if (!prove(*plan, diagnostics).proved) {
      refused.push_back(name);
      continue;
    }
    std::vector<bool> in_place{plan->contract.in_place == InPlace::yes};
    cases.push_back({name,
                     std::make_shared<const Program>(std::move(*plan)),
                     {Dtype::f32, Dtype::f16, Dtype::i32},
                     {ReduceOp::sum},
                     std::move(in_place)});
  }
}

void add_coinciding(const StageOptions& options, std::vector<Case>& cases) {
  for (const CoincidingProgram& p : coinciding_programs()) {
    const std::string name = p.name + (p.in_place ? " in place" : "");
    if (options.ranks != 2 || !passes(options, name)) continue;
    Sources sources;
    Diagnostics diagnostics;
    auto plan = compile(sources, sources.add(name, p.text), {}, {}, diagnostics);
    if (!plan) {
      fmt::print("{}\n", render_text(diagnostics, sources));
      std::abort();
    }
    cases.push_back({name,
                     std::make_shared<const Program>(std::move(*plan)),
                     {Dtype::f32},
                     {ReduceOp::sum},
                     {p.in_place}});
  }
}

}  // namespace

bool Case::holds_sentinels() const {
  for (const Rank& rank : plan->ranks) {
    for (const Buffer& buffer : rank.buffers) {
      if (is_sentinel(buffer.packets)) return true;
    }
  }
  return false;
}

std::vector<uint32_t> Case::widths() const {
  if (!holds_sentinels()) return {0};
  std::vector<uint32_t> all;
  for (const uint32_t width : {1, 2, 4, 8}) {
    if (!dtypes_of(width).empty()) all.push_back(width);
  }
  return all;
}

std::vector<Dtype> Case::dtypes_of(uint32_t width) const {
  std::vector<Dtype> fitting;
  for (const Dtype dtype : dtypes) {
    if (width == 0 || info(dtype).bytes == width) fitting.push_back(dtype);
  }
  return fitting;
}

// Plans of the peer take sizes that divide evenly: the next one.
uint64_t Case::bytes(const RunSize& size, Dtype dtype) const {
  const uint32_t element = info(dtype).bytes, align = plan->launch.align;
  const Contract& contract = plan->contract;
  uint64_t part = size.elements * element;
  if (size.elements == 0) part = Chunking::part_for_message(contract, size.bytes, element);
  while (contract.even_only && !Chunking(contract, part, align).even()) part += element;
  return Chunking(contract, part, align).message_bytes();
}

bool Case::takes(uint64_t message, Dtype dtype) const {
  const Contract& contract = plan->contract;
  const uint64_t part = Chunking::part_for_message(contract, message, info(dtype).bytes);
  return !contract.even_only || Chunking(contract, part, plan->launch.align).even();
}

std::vector<Case> library_cases(const StageOptions& options) {
  std::vector<Case> cases;
  for (const LibraryProgram& entry : library()) {
    for (const Defines& defines : entry.worlds) {
      const bool fits = std::ranges::any_of(defines, [&](const auto& d) {
        return (d.first == "R" || d.first == "world") && d.second == std::to_string(options.ranks);
      });
      if (!fits || !passes(options, fmt::format("{} {}", entry.name, mscclc::text(defines)))) {
        continue;
      }
      auto made = compiled(entry.name, defines);
      if (made && made->plan->ranks.size() == options.ranks) cases.push_back(std::move(*made));
    }
  }
  return cases;
}

std::vector<Case> all_cases(const StageOptions& options, std::vector<std::string>& refused) {
  std::vector<Case> cases = library_cases(options);
  add_coinciding(options, cases);
  add_peers(options, cases, refused);
  return cases;
}

Tally run_cases(const StageOptions& options, const std::vector<Case>& cases,
                const std::function<std::string(Communicator&, const Case&)>& run) {
  return run_series(
      options, cases.size(),
      [&](Communicator& communicator, size_t i) { return run(communicator, cases[i]); },
      [&](size_t i, const std::string& fault) {
        fmt::print("{}: FAILED\n{}\n", cases[i].name, fault);
        std::fflush(stdout);
      });
}

Result<Case> library_case(std::string_view name, uint32_t ranks) {
  return compiled(name, {{"R", std::to_string(ranks)}});
}

Result<Case> library_case(std::string_view name, const Defines& defines) {
  return compiled(name, defines);
}

std::unique_ptr<LoadedCase> LoadedCase::load(Communicator& communicator, const Case& of,
                                             const LoadOptions& options, Diagnostics& diagnostics) {
  std::unique_ptr<LoadedCase> loaded(new LoadedCase(communicator, of, options));
  // Results are what is looked at here; the prover refuses some of MSCCL++'s plans.
  LoadOptions unproved = options;
  unproved.proof = ProofPolicy::skip;
  unproved.compiled_kernels = false;  // the kernels part has these
  loaded->executable_ = communicator.load(of.plan, unproved, diagnostics);
  return loaded->executable_ == nullptr ? nullptr : std::move(loaded);
}

// Buffers begin at other places on every rank where the plan allows it.
std::unique_ptr<CheckedCall> LoadedCase::call(const RunSpec& spec, Diagnostics& diagnostics) {
  const uint64_t shift = options_.zero_copy ? 16 * (communicator_.rank() + 1) : 0;
  auto memory = CallerMemory::make(communicator_, *of_.plan,
                                   {.max_bytes = options_.max_bytes,
                                    .input_offset = shift == 0 ? 0 : shift + 4,
                                    .output_offset = shift == 0 ? 0 : 2 * shift + 8,
                                    .registered = options_.zero_copy},
                                   diagnostics);
  if (memory == nullptr) return nullptr;
  memories_.push_back(std::move(memory));
  return call_beside(spec, diagnostics);
}

std::unique_ptr<CheckedCall> LoadedCase::call_beside(const RunSpec& spec,
                                                     Diagnostics& diagnostics) {
  if (memories_.empty()) return call(spec, diagnostics);
  auto made = std::make_unique<CheckedCall>(communicator_, *executable_, *memories_.back(), spec);
  return made->bind(diagnostics) ? std::move(made) : nullptr;
}

}  // namespace mscclc::testing
