// For tests: the library's plans, by way of a class that counts or changes what they are asked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/doors/nccl/comm/library_calls.h"
#include "runtime/doors/nccl/comm/make.h"
#include "runtime/doors/nccl/comm/plan_calls.h"

namespace mscclc::nccl::testing {

/// A call of the library's plans, which hands everything on.
class ForwardedCall : public ServedCall {
 public:
  explicit ForwardedCall(std::unique_ptr<ServedCall> call) : call_(std::move(call)) {}
  std::string plan() const override { return call_->plan(); }
  bool waits_for_ranks() override { return call_->waits_for_ranks(); }
  bool prepare(Diagnostics& diagnostics) override { return call_->prepare(diagnostics); }
  bool leave_to_real() override { return call_->leave_to_real(); }
  bool launch(Diagnostics& diagnostics) override { return call_->launch(diagnostics); }

 private:
  const std::unique_ptr<ServedCall> call_;
};

/// Hands everything on.
class ForwardedCalls : public PlanCalls {
 public:
  explicit ForwardedCalls(std::unique_ptr<PlanCalls> library) : library_(std::move(library)) {}
  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    return library_->serve(call, stream, capturing, what);
  }
  bool launches_wait() const override { return library_->launches_wait(); }
  std::optional<SharedMemory> register_memory(void* address, uint64_t bytes,
                                              Diagnostics& diagnostics) override {
    return library_->register_memory(address, bytes, diagnostics);
  }
  void deregister_memory(const SharedMemory& memory) override {
    library_->deregister_memory(memory);
  }

 private:
  const std::unique_ptr<PlanCalls> library_;
};

/// Communicators that are made from now on have a `Calls`, which is a ForwardedCalls.
template <class Calls>
void serve_by() {
  set_plan_calls([](Communicator& communicator, const CollectivesOptions& options,
                    Diagnostics& diagnostics) -> std::unique_ptr<PlanCalls> {
    auto library = make_library_calls(communicator, options, diagnostics);
    return library == nullptr ? nullptr : std::make_unique<Calls>(std::move(library));
  });
}

}  // namespace mscclc::nccl::testing
