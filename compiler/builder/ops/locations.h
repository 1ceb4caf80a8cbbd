// Where in the text the ops that follow stand: sites of the program, each kept once, and the values
// of the variables that distinguish ops of one site.
#pragma once

#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/builder/draft/draft.h"

namespace mscclc {

class Locations {
 public:
  Locations(BuildReports& reports, Draft& draft) : reports_(reports), draft_(draft) {}

  /// A site of the program and the values of its variables …
  void at_site(uint32_t site, Slice values) {
    site_ = site;
    values_ = values;
    locations_ = {};
  }
  /// … or several such places.
  void at_locations(Slice locations) {
    site_ = kNone;
    locations_ = locations;
  }
  /// For C++ programs: file and line of a call, and variables that distinguish ops.
  void at_call(std::initializer_list<std::pair<std::string_view, int64_t>> variables,
               const char* file, uint32_t line);
  /// The site of this place and these variables, made once.
  uint32_t site_id(Site site);

  /// The locations of the present op; made once for all ops that it becomes.
  Slice present() {
    if (site_ != kNone) {
      locations_.count = 1;
      *draft_.program.locations.add(1, locations_.first) = {site_, values_};
      site_ = kNone;
    }
    return locations_;
  }

 private:
  BuildReports& reports_;
  Draft& draft_;
  uint32_t site_ = kNone;
  Slice values_, locations_;
  std::map<std::vector<uint32_t>, uint32_t> sites_;  ///< of file, line, column, variables
};

}  // namespace mscclc
