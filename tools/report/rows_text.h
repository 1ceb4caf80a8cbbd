// What is proved of a collective of rows: which function of which sum its results are.
#pragma once

#include <string>

#include "ir/program/program.h"
#include "ir/program/proof.h"

namespace mscclc {

/// "output = y of add_rmsnorm(x0 + x1, residual, weight, eps), residual = residual_out of it": an
/// expression over what ranks give (x0, x1, …) and externals, of the same rows. Two plans with one
/// expression give the same bits, however they come to it. "" if the contract has no row function.
/// REQUIRES: proof.proved.
std::string rows_text(const Program& program, const Proof& proof);

}  // namespace mscclc
