// Of all findings those that are reported: what follows from others is left out.
#include <algorithm>
#include <iterator>

#include "passes/prove/report/report.h"

namespace mscclc::proof {
namespace {

/// Of results that are wrong in the same way the first stands for all, whichever ops wrote them.
std::vector<Finding> joined(std::vector<Finding> findings) {
  std::vector<Finding> found;
  for (Finding& finding : findings) {
    const auto first = std::ranges::find_if(found, [&](const Finding& f) {
      return f.kind == Finding::Kind::wrong_value && f.kind == finding.kind &&
             f.differences == finding.differences;
    });
    if (first == found.end()) {
      found.push_back(std::move(finding));
    } else {
      first->elsewhere.push_back({finding.chunk, finding.first, finding.alike.size()});
    }
  }
  return found;
}

}  // namespace

std::vector<Finding> causes(const std::vector<Finding>& findings) {
  const auto rank = [](const Finding& f) {
    return f.kind == Finding::Kind::race ? 0 : f.kind == Finding::Kind::slot_twice ? 1 : 2;
  };
  int cause = 2;
  for (const Finding& finding : findings) cause = std::min(cause, rank(finding));
  std::vector<Finding> found;
  std::ranges::copy_if(findings, std::back_inserter(found), [&](const Finding& finding) {
    return rank(finding) == cause || finding.kind == Finding::Kind::wrong_value ||
           finding.kind == Finding::Kind::wrong_external ||
           finding.kind == Finding::Kind::other_order;
  });
  return joined(std::move(found));
}

}  // namespace mscclc::proof
