#include "plans/write/op_report.h"

#include <utility>

#include "ir/op_error.h"

namespace mscclc {

void OpReport::error(std::string code, uint32_t rank, const Op& op, std::string message) {
  ++errors_;
  op_error(diagnostics_, std::move(code), program_, rank, op, std::move(message));
}

void OpReport::error(std::string code, std::string message) {
  ++errors_;
  diagnostics_.error(std::move(code), Span{}, std::move(message));
}

}  // namespace mscclc
