// The lines above the ranks: the contract with its promises, and `launch`. Each call checks what it
// is given; false after a mistake, which is reported.
#pragma once

#include <span>
#include <vector>

#include "compiler/builder/draft/draft.h"

namespace mscclc {

class Header {
 public:
  Header(BuildReports& reports, Draft& draft) : reports_(reports), draft_(draft) {}

  /// Sets the contract, and makes its ranks.
  bool collective(const CollectiveSpec& spec);
  /// One line of a custom contract.
  bool ensure(Promise promise, Mark mark);
  /// What the program has of row functions and externals.
  bool rows(Mark mark);
  /// Its arrays of flags; a mark of each, or none.
  bool flags(std::span<const Mark> marks);
  bool launch(const Launch& launch, const LaunchMarks& marks);

  bool has_contract() const { return has_contract_; }
  /// Where the promise stands that was made as the i-th.
  Mark promise_mark(uint32_t i) const { return promise_marks_[i]; }
  /// Adds how chunks of different sizes may be paired all the same.
  void note_even(Diagnostic& d);

 private:
  BuildReports& reports_;
  Draft& draft_;
  bool has_contract_ = false;
  std::vector<Mark> promise_marks_;
};

}  // namespace mscclc
