#include "tools/topology/banned_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "passes/prove/prove.h"
#include "plans/format/embedded_library.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"
#include "tools/io/files.h"
#include "tools/io/input.h"

namespace mscclc::topology {
namespace {

/// "0 1 3 2": which rank of the program each number is.
std::string numbers_text(const std::vector<uint32_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, " "));
}

class Lister {
 public:
  Lister(const BanOptions& options, const Target& target) : options_(options), target_(target) {}

  int run() {
    for (const LibraryFile& file : embedded_library()) {
      if (!file.name.ends_with(".mscl")) continue;
      if (const int code = look_at(file); code != kFine) return code;
    }
    if (!found_.empty()) return options_.output.empty() ? kFine : write_all();
    put_error(fmt::format("mscclc topology: no program of {} for {} ranks does without {}\n",
                          name(options_.kind), options_.ranks, bans_text(options_.bans)));
    return kWrongProgram;
  }

 private:
  int look_at(const LibraryFile& file) {
    Sources sources;
    Diagnostics diagnostics;  // programs for other collectives and numbers of ranks
    FrontEndOptions options;
    options.defines = {{"R", std::to_string(options_.ranks)}};
    PassOptions passes;
    passes.limits = target_.op_limits();
    const FileId id = sources.add(std::string(file.name), std::string(file.text));
    const auto program = compile(sources, id, options, passes, diagnostics);
    if (!program || program->contract.kind != options_.kind) return kFine;
    const std::string stem(file.name.substr(0, file.name.size() - 5));
    const auto numbers = numbers_without(*program, options_.bans);
    if (!numbers) {
      put(fmt::format("{}: has channels at these links, however its ranks are numbered\n", stem));
      return kFine;
    }
    const Program plan = renumbered(*program, *numbers);
    Proof proof = prove(plan, diagnostics);
    if (!proof.proved) {  // its sums keep the order of the ranks, which are others now
      put(fmt::format("{}: with ranks as {} it is not what it promises\n", stem,
                      numbers_text(*numbers)));
      return kFine;
    }
    if (const auto broken = broken_ban(plan, options_.bans)) {
      put_error(fmt::format("mscclc topology: {}: a channel between ranks {} and {} is left\n",
                            stem, broken->a, broken->b));
      return kWrongResult;
    }
    proof.sums = sums_of(plan, proof);
    put(fmt::format("{}: proved, ranks as {}\n", stem, numbers_text(*numbers)));
    found_.push_back({stem, plan, std::move(proof)});
    return kFine;
  }

  /// Sizes that no plan serves go to the plan before them, the smallest to the first: no call needs
  /// a plan with a channel at the link.
  void close_gaps() {
    std::ranges::sort(found_, {}, [](const Found& f) { return f.plan.select.sizes.min; });
    found_.front().plan.select.sizes.min = 0;
    uint64_t most = 0;
    Found* last = nullptr;
    for (Found& one : found_) {
      if (last != nullptr && one.plan.select.sizes.min > most) {
        last->plan.select.sizes.max = one.plan.select.sizes.min - 1;
      }
      if (last != nullptr && one.plan.select.sizes.max <= most) continue;
      most = one.plan.select.sizes.max;
      last = &one;
    }
    last->plan.select.sizes.max = ~uint64_t{0};
  }

  int write_all() {
    close_gaps();
    for (const Found& one : found_) {
      if (const int code = write(one.stem, one.plan, one.proof); code != kFine) return code;
    }
    put(
        fmt::format("{} plans in '{}' for all sizes; with MSCCLC_PLAN_PATH={} and "
                    "MSCCLC_REQUIRE_PLAN=1 a job has no others\n",
                    found_.size(), options_.output, options_.output));
    return kFine;
  }

  int write(const std::string& stem, const Program& plan, const Proof& proof) const {
    std::error_code failed;
    std::filesystem::create_directories(options_.output, failed);
    if (failed) {
      return Input::usage(fmt::format("cannot make '{}': {}", options_.output, failed.message()));
    }
    Diagnostics diagnostics;
    const auto text = write_plan(plan, target_, diagnostics, &proof);
    if (!text) {
      put_error(render_text(diagnostics, Sources()));
      return kWrongProgram;
    }
    const std::string path = fmt::format("{}/{}-R{}-without-{}.json", options_.output, stem,
                                         options_.ranks, bans_text(options_.bans));
    const auto written = write_file(path, *text + "\n");
    return written ? kFine : Input::usage(written.error());
  }

  struct Found {
    std::string stem;
    Program plan;
    Proof proof;
  };

  const BanOptions& options_;
  const Target& target_;
  std::vector<Found> found_;
};

}  // namespace

int list_plans_without(const BanOptions& options) {
  Diagnostics diagnostics;
  const auto target = find_target("sm_90", diagnostics);
  if (!target) {
    put_error(render_text(diagnostics, Sources()));
    return kUsage;
  }
  return Lister(options, *target).run();
}

}  // namespace mscclc::topology
