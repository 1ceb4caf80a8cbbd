// Writes what the extra key `mscclc` says: about the program as a whole, and about each rank.
#pragma once

#include <cstdint>
#include <string>

#include "ir/program/program.h"
#include "plans/format/json/json_writer.h"
#include "plans/format/wire/wire_layout.h"

namespace mscclc {

// All members before `ranks`, in this order.
/// `"schema":2,"target":…`
void write_version(JsonWriter& json, const std::string& target);
/// `"description":…`, if there is one.
void write_description(JsonWriter& json, const Program& program);
/// `"contract":… "launch":…`
void write_terms(JsonWriter& json, const Program& program);
/// `"files":[…],"variables":[…],"sites":[…]`
void write_sites(JsonWriter& json, const Program& program);

/// `"buffers":[…],"channels":[…] …`: what is declared at a rank.
void write_declarations(JsonWriter& json, const Program& program, const WireLayout& layout,
                        uint32_t rank);

}  // namespace mscclc
