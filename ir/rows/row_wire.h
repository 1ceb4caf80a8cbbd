// The names of values in plans: as programs write them, where these have a name of their own.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

std::string_view wire_name(Op op);
std::optional<Op> find_wire_op(std::string_view name);
std::optional<Type> find_type(std::string_view text);
/// All of them.
std::vector<std::string_view> type_names();
std::optional<Kind> find_kind(std::string_view text);

}  // namespace mscclc::rows
