// The exported functions, one of each row of api.def: pncclX, and ncclX as a weak name for it, as
// NCCL has them. What the real NCCL calls of them goes back to it at once.
#include <fmt/format.h>

#include <exception>
#include <type_traits>

#include "runtime/doors/nccl/abi/api.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/call.h"
#include "runtime/doors/nccl/calls/comm_calls.h"
#include "runtime/doors/nccl/calls/group.h"
#include "runtime/doors/nccl/calls/real_calls.h"
#include "runtime/doors/nccl/comm/comm.h"
#include "runtime/doors/nccl/entry_points/entry_points.h"

namespace mscclc::nccl {
namespace {

/// What a function answers that cannot do anything.
template <typename Result>
Result refusal(ncclResult_t code, const std::string& why) {
  const ncclResult_t result = fail(code, why);
  if constexpr (std::is_same_v<Result, ncclResult_t>) return result;
  if constexpr (!std::is_void_v<Result>) return Result{};
}

/// No exception may leave a C function.
template <typename Result, typename Body>
Result guarded(const char* name, Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    return refusal<Result>(ncclSystemError, fmt::format("{}: {}", name, error.what()));
  }
}

/// Calls the real NCCL's function by call(function).
template <typename Result, typename Function, typename Call>
Result pass(Function* RealNccl::*member, const char* name, Call call) {
  const RealNccl* const real = real_nccl();
  if (real == nullptr) {
    return refusal<Result>(ncclInvalidUsage, fmt::format("{}: {}", name, why_no_real()));
  }
  if (real->*member == nullptr) {
    return refusal<Result>(ncclInvalidUsage, fmt::format("{}: NCCL {} has no such function", name,
                                                         version_text(real->version)));
  }
  const InsideReal inside;
  return call(real->*member);
}

/// The same with the real NCCL's communicator in the place of ours: call(function, communicator).
template <typename Result, typename Function, typename Call>
Result pass_with_comm(ncclComm_t handle, Function* RealNccl::*member, const char* name, Call call) {
  const auto with = [&](ncclComm_t comm) {
    return pass<Result>(member, name, [&](Function* function) { return call(function, comm); });
  };
  // NCCL's own threads make such calls, too.
  if (InsideReal::here() || (handle != nullptr && !is_our_handle(handle))) return with(handle);
  ncclResult_t result = ncclSuccess;
  const CommPointer comm = usable_comm(handle, name, result);
  if (comm == nullptr) return refusal<Result>(result, last_error());
  const ncclComm_t made = comm->real;
  if (made != nullptr) return with(made);
  return refusal<Result>(
      ncclInvalidUsage,
      fmt::format("{}: there is no communicator of NCCL's for this: {}", name,
                  comm->facts.has_real ? "leave MSCCLC_NCCL_COMM at init" : comm->why_no_real));
}

/// The same for what all ranks do on a stream: a group waits with it for its end, and it may be the
/// first call that needs the real NCCL's communicator.
template <typename Function, typename MakeCall>
ncclResult_t queue(ncclComm_t handle, cudaStream_t stream, Function* RealNccl::*member,
                   const char* name, MakeCall make) {
  ncclResult_t result = ncclSuccess;
  NcclCall call;
  call.comm = usable_comm(handle, name, result);
  if (call.comm != nullptr) result = check_stream(*call.comm, name, stream);
  if (result == ncclSuccess) result = check_function(member, name);
  if (result != ncclSuccess) return ThreadGroup::of_thread().fail_with(result);
  call.stream = stream;
  call.make = [member, name, make](const RealNccl&, ncclComm_t comm) {
    return pass<ncclResult_t>(member, name,
                              [&](Function* function) { return make(function, comm); });
  };
  return ThreadGroup::of_thread().add(std::move(call));
}

}  // namespace
}  // namespace mscclc::nccl

using namespace mscclc::nccl;

#define ANSWER_own(result, name, arguments)                                           \
  if (InsideReal::here()) {                                                           \
    return pass<result>(&RealNccl::name, "nccl" #name,                                \
                        [&](auto function) -> result { return function arguments; }); \
  }                                                                                   \
  return entry_points::name arguments;
#define ANSWER_pass(result, name, arguments)         \
  return pass<result>(&RealNccl::name, "nccl" #name, \
                      [&](auto function) -> result { return function arguments; });
// In these, the parameter `comm` of the inner function stands in the arguments.
#define ANSWER_comm(result, name, arguments) \
  return pass_with_comm<result>(             \
      comm, &RealNccl::name, "nccl" #name,   \
      [&](auto function, ncclComm_t comm) -> result { return function arguments; });
#define ANSWER_queue(result, name, arguments)                                         \
  if (InsideReal::here()) {                                                           \
    return pass<result>(&RealNccl::name, "nccl" #name,                                \
                        [&](auto function) -> result { return function arguments; }); \
  }                                                                                   \
  return queue(comm, stream, &RealNccl::name, "nccl" #name,                           \
               [=](auto function, ncclComm_t comm) -> result { return function arguments; });

#define API(since, how, result, name, parameters, arguments)                           \
  extern "C" __attribute__((visibility("default"))) result pnccl##name parameters {    \
    return guarded<result>("nccl" #name,                                               \
                           [&]() -> result { ANSWER_##how(result, name, arguments) }); \
  }                                                                                    \
  extern "C" __attribute__((weak, alias("pnccl" #name), visibility("default")))        \
  result nccl##name parameters;
#include "runtime/doors/nccl/abi/api.def"
#undef API

extern "C" __attribute__((visibility("default"))) ncclResult_t mscclc_nccl_order(
    ncclComm_t comm, const char* order) {
  return guarded<ncclResult_t>("mscclc_nccl_order",
                               [&] { return entry_points::order(comm, order); });
}

#undef ANSWER_own
#undef ANSWER_pass
#undef ANSWER_comm
#undef ANSWER_queue
