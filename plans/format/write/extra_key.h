// Writes what the extra key `mscclc` says: about the program as a whole, and about each rank.
#pragma once

#include <cstdint>
#include <string>

#include "ir/program/program.h"
#include "plans/format/json/json_out.h"
#include "plans/format/wire/wire_layout.h"

namespace mscclc {

// All members before `ranks`, in this order, each followed by a comma.
/// `"schema":2,"target":…`
void write_version(JsonOut& out, const std::string& target);
/// `"description":…`, if there is one.
void write_description(JsonOut& out, const Program& program);
/// `"contract":… "launch":…`
void write_terms(JsonOut& out, const Program& program);
/// `"files":[…],"variables":[…],"sites":[…]`
void write_sites(JsonOut& out, const Program& program);

/// `"buffers":[…],"channels":[…] …`: what is declared at a rank, each member followed by a comma.
void write_declarations(JsonOut& out, const Program& program, const WireLayout& layout,
                        uint32_t rank);

}  // namespace mscclc
