// Writes what the extra key `mscclc` says: about the program as a whole, and about each rank.
#pragma once

#include <cstdint>
#include <string>

#include "ir/program/program.h"
#include "plans/json/json_out.h"
#include "plans/wire/wire_layout.h"

namespace mscclc {

/// `"schema":2, … "sites":[…]`: all members before `ranks`.
void write_extra_header(JsonOut& out, const Program& program, const std::string& target);

/// `"buffers":[…],"channels":[…] …`: what is declared at a rank, each member followed by a comma.
void write_declarations(JsonOut& out, const Program& program, const WireLayout& layout,
                        uint32_t rank);

}  // namespace mscclc
