// Row functions, externals and flags in the extra key.
#pragma once

#include "ir/program/program.h"
#include "plans/format/json/json_writer.h"

namespace mscclc {

/// `rows`, `externals` and `flags`, where there are any.
void write_rows(JsonWriter& json, const Program& program);

}  // namespace mscclc
