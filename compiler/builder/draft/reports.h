// How the parts of the builder report: each mistake at its place, with the context that the caller
// knows of.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/builder/draft/operands.h"

namespace mscclc {

class BuildReports {
 public:
  /// Without `origin`, places are those of set_call(); they appear in messages if `sources` is
  /// given.
  BuildReports(Diagnostics& diagnostics, Origin* origin, Sources* sources);
  ~BuildReports();

  /// Reports a mistake with its context; the caller adds the declaration and the remedy.
  Diagnostic& fail(std::string code, Mark mark, std::string message);
  Diagnostic& warn(std::string code, Mark mark, std::string message);
  void note(Diagnostic& d, Mark mark, std::string text);

  Span span(Mark mark) { return origin_->span(mark); }
  /// Source text of a mark, "" if there is none.
  std::string_view text(Mark mark) const { return origin_->text(mark); }
  Diagnostics& diagnostics() { return diagnostics_; }

  /// A mistake was made, whether or not it is reported here.
  bool failed() const { return failed_; }
  void set_failed() { failed_ = true; }

  /// For C++ programs: where the call stands that what follows belongs to. No effect where the
  /// caller has an origin of its own.
  void set_call(const char* file, uint32_t line, std::string context);

 private:
  class CallOrigin;

  Diagnostics& diagnostics_;
  std::unique_ptr<CallOrigin> own_origin_;
  Origin* origin_;
  bool failed_ = false;
};

}  // namespace mscclc
