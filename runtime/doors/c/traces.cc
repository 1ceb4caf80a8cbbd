// Programs of MSCCL++'s Python language, as the package for Python has traced them, to plans.
#include <cstdlib>

#include "compiler/mscclpp/passes.h"
#include "compiler/mscclpp/read_trace.h"
#include "compiler/mscclpp/write_plan.h"
#include "runtime/doors/c/errors.h"
#include "runtime/doors/c/handles.h"

namespace mscclc::capi {
namespace {

/// All passes and checks, in the order in which their errors are worth most.
mscclpp::Checked complete(mscclpp::Program& program) {
  if (auto mistake = mscclpp::check_blocks(program)) return mistake;
  mscclpp::run_passes(program);
  if (program.limits) {
    if (auto mistake = mscclpp::check_limits(program)) return mistake;
  }
  return mscclpp::check_sums(program);
}

uint64_t* copy_words(const std::vector<uint64_t>& words) {
  const size_t bytes = words.size() * sizeof(uint64_t);
  auto* copy = static_cast<uint64_t*>(std::malloc(bytes + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, words.data(), bytes);
  return copy;
}

JsonLayout layout_of(int32_t indent) {
  return {.indent = indent < 0 ? -1 : indent, .compact = indent == MSCCLC_JSON_COMPACT};
}

}  // namespace
}  // namespace mscclc::capi

using namespace mscclc;
using namespace mscclc::capi;

mscclc_result_t mscclc_plan_of_trace(const uint64_t* trace, size_t words, int32_t indent,
                                     char** gpus, uint64_t** places, size_t* places_count,
                                     uint64_t* wrong_at) {
  return guarded([&] {
    if (trace == nullptr || wrong_at == nullptr ||
        (places == nullptr) != (places_count == nullptr)) {
      return refuse("mscclc_plan_of_trace",
                    "'trace' or 'wrong_at' is NULL, or only one of 'places' and 'places_count'");
    }
    if (gpus != nullptr) *gpus = nullptr;
    if (places != nullptr) *places = nullptr;
    *wrong_at = mscclpp::kNoPythonCall;
    auto program = mscclpp::read_trace({trace, words});
    if (!program) return refuse("mscclc_plan_of_trace", "'trace' is not of this version");
    mscclpp::Checked mistake = mscclpp::check_signals(*program);
    if (!mistake && (gpus != nullptr || places != nullptr)) mistake = complete(*program);
    if (mistake) {
      *wrong_at = mistake->place;
      return fail(MSCCLC_NOT_PROVED, mistake->text);
    }
    std::unique_ptr<char, decltype(&std::free)> text(nullptr, std::free);
    if (gpus != nullptr) text.reset(copy_text(mscclpp::write_gpus(*program, layout_of(indent))));
    if (places != nullptr) {
      const auto all = mscclpp::write_places(*program);
      *places = copy_words(all);
      *places_count = all.size();
    }
    if (gpus != nullptr) *gpus = text.release();
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}
