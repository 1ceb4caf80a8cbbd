#include "runtime/doors/c/externals.h"

#include <fmt/format.h>

#include <optional>

namespace mscclc::capi {
namespace {

std::optional<rows::Type> type_of(mscclc_dtype_t dtype) {
  switch (dtype) {
    case MSCCLC_F32:
      return rows::Type::f32;
    case MSCCLC_F16:
      return rows::Type::f16;
    case MSCCLC_BF16:
      return rows::Type::bf16;
    case MSCCLC_E4M3:
      return rows::Type::e4m3;
    case MSCCLC_E5M2:
      return rows::Type::e5m2;
    case MSCCLC_E8M0:
      return rows::Type::e8m0;
    default:
      return {};
  }
}

}  // namespace

Result<std::vector<CallExternal>> externals_of(const mscclc_call_t& call) {
  if (call.externals == nullptr && call.externals_count > 0) {
    return Error{"'externals' of the call is NULL, and 'externals_count' is not 0"};
  }
  std::vector<CallExternal> externals;
  for (size_t i = 0; i < call.externals_count; ++i) {
    const mscclc_external_t& given = call.externals[i];
    const auto type = type_of(given.dtype);
    if (given.name == nullptr || !type || given.reserved != 0) {
      return Error{fmt::format("external {} of the call has {}", i,
                               given.name == nullptr ? "no name"
                               : !type               ? "a type that no external has"
                                                     : "'reserved' that is not 0")};
    }
    externals.push_back({.name = given.name,
                         .type = *type,
                         .data = given.data,
                         .rows = given.rows,
                         .columns = given.columns,
                         .value = given.value});
  }
  return externals;
}

Result<std::vector<CallFlags>> flags_of(const mscclc_call_t& call) {
  if (call.flags == nullptr && call.flags_count > 0) {
    return Error{"'flags' of the call is NULL, and 'flags_count' is not 0"};
  }
  if (call.launch_order < MSCCLC_OTHER_FIRST || call.launch_order > MSCCLC_OTHER_ONLY) {
    return Error{"'launch_order' of the call is none"};
  }
  std::vector<CallFlags> flags;
  for (size_t i = 0; i < call.flags_count; ++i) {
    const mscclc_flags_t& given = call.flags[i];
    if (given.name == nullptr || given.reserved != 0) {
      return Error{fmt::format("flags {} of the call have {}", i,
                               given.name == nullptr ? "no name" : "'reserved' that is not 0")};
    }
    flags.push_back(
        {.name = given.name, .words = given.words, .count = given.count, .bits = given.bits});
  }
  return flags;
}

}  // namespace mscclc::capi
