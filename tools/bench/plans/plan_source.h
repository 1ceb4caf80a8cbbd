// Where the benchmark's plans come from: programs and plans that the command line names, or the
// library, each at the sizes at which its table picks it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/link_kind.h"
#include "tools/bench/results/result.h"
#include "tools/io/library.h"

namespace mscclc::bench {

struct BenchPlan {
  std::shared_ptr<const Program> program;       ///< its name as tables show it, with its parameters
  std::string ordered_by;                       ///< what orders two calls, by its proof
  bool keeps_input = true;                      ///< out of place, by its proof
  std::string argument = {};                    ///< of a plan of the library: what it was made of
  InPlace in_place = InPlace::either;           ///< the calls that it is for
  std::string file = {};                        ///< that it was read from, as compiled; "": none
  std::shared_ptr<const Program> as_read = {};  ///< file: without what rows of a table change
  std::optional<LinkKind> links = {};           ///< nvlink or pcie: the machines; without one: any

  /// True if it is for machines whose worst link is of this kind.
  bool is_for(LinkKind worst) const {
    return !links || (*links == LinkKind::pcie) == (worst == LinkKind::pcie);
  }
};

/// The calls that a run makes.
struct CallsOfRun {
  std::vector<CollectiveKind> collectives;  ///< empty: all
  std::vector<uint64_t> sizes;              ///< bytes
  std::vector<Dtype> dtypes;
};

class PlanSource {
 public:
  /// `nodes`: how many the ranks are spread over.
  PlanSource(uint32_t ranks, uint32_t root, uint32_t nodes = 1)
      : ranks_(ranks), root_(root), nodes_(nodes) {}

  /// Loads a plan, or compiles a program for the ranks and the root; after ':' come definitions
  /// of parameters (B=4,I=2). What cannot be used, or is not proved, is left out.
  void add(const std::string& argument);
  /// Adds what the library picks for these calls, over each kind of links, as that is not known
  /// before the ranks have met; the `select` of each says for which calls it does.
  void add(const Library& library, const CallsOfRun& calls);

  /// `worst`: the worst link of any two ranks.
  std::vector<BenchPlan> plans_for(CollectiveKind kind, uint32_t ranks, LinkKind worst) const;
  /// Collectives in the order in which the plans came.
  std::vector<CollectiveKind> collectives() const;
  const std::vector<LeftOut>& left_out() const { return left_out_; }

 private:
  void add(const Library& library, const LibraryRange& range, LinkKind links);

  const uint32_t ranks_, root_, nodes_;
  std::vector<BenchPlan> plans_;
  std::vector<LeftOut> left_out_;
};

}  // namespace mscclc::bench
