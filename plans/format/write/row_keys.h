// Row functions and externals in the extra key.
#pragma once

#include "ir/program/program.h"
#include "plans/format/json/json_writer.h"

namespace mscclc {

/// `rows` and `externals`, where there are any.
void write_rows(JsonWriter& json, const Program& program);

}  // namespace mscclc
