#include "runtime/doors/nccl/calls/scaled_call.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "ir/support/precondition.h"
#include "runtime/api/device.h"
#include "runtime/support/result_kind.h"

namespace mscclc::nccl {
namespace {

/// Elements of a rank's input.
uint64_t input_count(const CollectiveCall& call, uint64_t ranks) {
  return info(call.kind).has_rows(Side::input) ? call.count * ranks : call.count;
}

class ScaledCall final : public ServedCall {
 public:
  /// The communicator must outlive it. `sum`: the plan's call, of what has been scaled.
  ScaledCall(Comm& comm, StreamHandle stream, Scaling scaling, std::unique_ptr<ServedCall> sum,
             Diagnostics found)
      : comm_(comm),
        stream_(stream),
        scaling_(scaling),
        sum_(std::move(sum)),
        found_(std::move(found)) {}
  std::string plan() const override { return sum_->plan(); }
  bool leave_to_real() override { return sum_->leave_to_real(); }
  bool waits_for_ranks() override { return sum_->waits_for_ranks(); }
  bool prepare(Diagnostics& diagnostics) override {
    for (const Diagnostic& mistake : found_.all()) diagnostics.add(mistake);
    if (!found_.has_errors()) return sum_->prepare(diagnostics);
    if (lacks_memory(found_)) comm_.communicator->abort(found_);  // the others wait for this call
    return false;
  }
  bool launch(Diagnostics& diagnostics) override {
    if (comm_.order->follow(stream_, diagnostics) &&
        comm_.device->scale(scaling_, stream_, diagnostics)) {
      return sum_->launch(diagnostics);
    }
    comm_.communicator->abort(diagnostics);  // the others wait for this call
    return false;
  }

 private:
  Comm& comm_;
  const StreamHandle stream_;
  const Scaling scaling_;
  const std::unique_ptr<ServedCall> sum_;
  const Diagnostics found_;  ///< for prepare(): finding a plan reports nothing
};

/// What plans would refuse of the call's own buffers, which they do not see.
bool check_buffers(const CollectiveCall& call, uint64_t bytes, Diagnostics& diagnostics) {
  const bool in_output = info(call.kind).keeps_form();
  const bool no_output = in_output && call.output == nullptr;
  if (bytes > 0 && (call.input == nullptr || no_output)) {
    diagnostics.error("bad-call", {},
                      fmt::format("{}: the rank needs an {}, but gives nullptr",
                                  info(call.kind).name, no_output ? "output" : "input"));
    return false;
  }
  const auto from = reinterpret_cast<uintptr_t>(call.input),
             to = reinterpret_cast<uintptr_t>(call.output);
  const bool apart = from == to || from + bytes <= to || to + bytes <= from;
  if (!in_output || apart) return true;
  diagnostics.error("overlap", {},
                    "input and output overlap, but not as they do in place for this collective");
  return false;
}

/// Memory for scaled inputs, which calls take in turn. What has become too small stays, as graphs
/// may use it. nullptr: reported.
uint8_t* room_for(Comm& comm, uint64_t bytes, Diagnostics& diagnostics) {
  if (comm.scaled.empty() || comm.scaled.back()->bytes() < bytes) {
    auto room =
        comm.device->allocate(std::bit_ceil(bytes), "scaled inputs of averages", diagnostics);
    if (room == nullptr) return nullptr;
    comm.scaled.push_back(std::move(room));
  }
  return comm.scaled.back()->data();
}

}  // namespace

bool scales_first(const CollectiveCall& call) {
  return call.op == ReduceOp::avg && info(call.kind).adds_up() &&
         info(call.dtype).kind == DtypeKind::kFloat;
}

std::unique_ptr<ServedCall> serve_scaled(Comm& comm, const CollectiveCall& call,
                                         StreamHandle stream, std::string* what) {
  precondition(scales_first(call));
  constexpr uint64_t kMax = uint64_t{1} << 62;  // bytes: beyond, the plan's call is refused
  const uint64_t width = info(call.dtype).bytes;
  const bool fits = call.count <= kMax / width / comm.ranks;
  const uint64_t count = fits ? input_count(call, comm.ranks) : 0;
  CollectiveCall sum = call;
  sum.op = ReduceOp::sum;
  Diagnostics found;
  // In an all-reduce the output has room for it. Alike on all ranks, as the choice of a plan is.
  const bool in_output = info(call.kind).keeps_form();
  if (in_output) {
    sum.input = call.output;
  } else if (count > 0) {
    sum.input = room_for(comm, count * width, found);
  }
  sum.registered = call.registered && in_output;
  (void)check_buffers(call, count * width, found);
  const Scaling scaling{.to = const_cast<void*>(sum.input),
                        .from = call.input,
                        .count = count,
                        .dtype = call.dtype,
                        .factor = 1.0 / comm.ranks};
  auto plan = comm.plans->serve(sum, stream, comm.device->is_capturing(stream), what);
  if (plan == nullptr) return nullptr;
  return std::make_unique<ScaledCall>(comm, stream, scaling, std::move(plan), std::move(found));
}

}  // namespace mscclc::nccl
