// Text compared as diff(1) does.
#pragma once

#include <string>

namespace mscclc {

/// Runs `diff -u`, which prints files `a` and `b` under names of their own. kFine, whether they
/// differ or not; kUsage, after saying why, if it cannot compare them.
int text_diff(const std::string& name_a, const std::string& a, const std::string& name_b,
              const std::string& b);

}  // namespace mscclc
