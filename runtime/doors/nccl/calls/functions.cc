#include "runtime/doors/nccl/calls/functions.h"

#include <algorithm>
#include <iterator>

#include "ir/support/precondition.h"
#include "runtime/doors/nccl/abi/types.h"

namespace mscclc::nccl {
namespace {

#define ARGUMENTS_NONE
#define ARGUMENTS_OP op,
#define ARGUMENTS_ROOT root_of(c),
#define ARGUMENTS_OP_ROOT op, root_of(c),
#define NCCL_COLLECTIVE(name, kind, arguments)                                                     \
  {CollectiveKind::kind,                                                                           \
   #name,                                                                                          \
   [](const RealNccl& real) { return real.name != nullptr; },                                      \
   [](const RealNccl& real) { return real.name##Config != nullptr; },                              \
   [](const RealNccl& real, ncclComm_t comm, const NcclCall& c, [[maybe_unused]] ncclRedOp_t op) { \
     return real.name(c.input, c.output, c.count, nccl_type_of(c.dtype),                           \
                      ARGUMENTS_##arguments comm, c.stream);                                       \
   },                                                                                              \
   [](const RealNccl& real, ncclComm_t comm, const NcclCall& c, [[maybe_unused]] ncclRedOp_t op,   \
      const ncclCollConfig_t* config) {                                                            \
     return real.name##Config(c.input, c.output, c.count, nccl_type_of(c.dtype),                   \
                              ARGUMENTS_##arguments comm, c.stream, config);                       \
   }},
constexpr CollectiveFunction kCollectiveFunctions[] = {
#include "runtime/doors/nccl/calls/functions.def"
};
#undef NCCL_COLLECTIVE
#undef ARGUMENTS_NONE
#undef ARGUMENTS_OP
#undef ARGUMENTS_ROOT
#undef ARGUMENTS_OP_ROOT

}  // namespace

const CollectiveFunction* function_of(CollectiveKind kind) {
  const auto row = std::find_if(std::begin(kCollectiveFunctions), std::end(kCollectiveFunctions),
                                [kind](const CollectiveFunction& one) { return one.kind == kind; });
  return row == std::end(kCollectiveFunctions) ? nullptr : row;
}

bool has_message(const RealNccl& real, const NcclCall& c) {
  precondition(is_message(c));
  return sends(c) ? real.Send != nullptr : real.Recv != nullptr;
}

ncclResult_t call_message(const RealNccl& real, ncclComm_t comm, const NcclCall& c) {
  precondition(has_message(real, c));
  const ncclDataType_t type = nccl_type_of(c.dtype);
  if (sends(c)) return real.Send(c.input, c.count, type, root_of(c), comm, c.stream);
  return real.Recv(c.output, c.count, type, root_of(c), comm, c.stream);
}

const char* name(const NcclCall& call) {
  if (is_message(call)) return sends(call) ? "Send" : "Recv";
  const CollectiveFunction* const function = function_of(call.kind);
  return function != nullptr ? function->name : "a call of NCCL's own";
}

}  // namespace mscclc::nccl
