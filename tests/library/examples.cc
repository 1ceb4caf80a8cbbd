// The programs of plans/examples, and the worlds in which they are proved and run.
#include <string>
#include <utility>

#include "tests/library/library.h"

namespace mscclc {
namespace {

using Worlds = std::vector<Defines>;

/// As many ranks as the examples are tried with.
Worlds any_ranks() {
  Worlds worlds;
  for (const int ranks : {2, 3, 4, 5, 7, 8, 16}) {
    worlds.push_back({{"R", std::to_string(ranks)}});
  }
  return worlds;
}

/// Any number of ranks, a single one as well.
Worlds from_one_rank_on() {
  Worlds worlds = any_ranks();
  worlds.push_back({{"R", "1"}});
  return worlds;
}

/// Grids of columns and rows, square and not, with 4 to 16 ranks.
Worlds grids() {
  Worlds worlds;
  for (const auto& [x, y] : {std::pair{"2", "2"}, {"3", "2"}, {"2", "4"}, {"3", "3"}, {"4", "4"}}) {
    worlds.push_back({{"X", x}, {"Y", y}});
  }
  return worlds;
}

Worlds with(Worlds worlds, const Worlds& others) {
  worlds.insert(worlds.end(), others.begin(), others.end());
  return worlds;
}

}  // namespace

const std::vector<LibraryProgram>& examples() {
  static const std::vector<LibraryProgram> programs = {
      {"examples/allgather_bruck", from_one_rank_on()},
      {"examples/allreduce_double_tree", from_one_rank_on()},
      {"examples/allreduce_gated", any_ranks()},
      {"examples/allreduce_head_norm", any_ranks()},
      {"examples/allreduce_recursive_doubling",
       with(from_one_rank_on(), {{{"R", "6"}, {"F", "LL128"}}, {{"R", "5"}, {"F", "sentinel"}}})},
      {"examples/allreduce_ring_both_ways", any_ranks()},
      {"examples/allreduce_torus", grids()},
      {"examples/allreduce_two_streams", any_ranks()},
      {"examples/alltoall_bruck", any_ranks()},
      {"examples/barrier_dissemination", any_ranks()},
      {"examples/halo_1d",
       with(any_ranks(), {{{"R", "2"}, {"wrap", "false"}}, {{"R", "5"}, {"wrap", "false"}}})},
      {"examples/halo_2d", grids()},
      {"examples/reduce_several_roots",
       with(any_ranks(), {{{"R", "4"}, {"roots", "3"}}, {{"R", "5"}, {"roots", "4,0,2,1,3"}}})},
      {"examples/scan_exclusive", any_ranks()},
      {"examples/scan_inclusive", from_one_rank_on()},
      // One sender, pairs that are there twice, a rank's own chunk, a rank without any pair.
      {"examples/sparse_exchange",
       with(any_ranks(), {{{"R", "4"}, {"from", "1,1,1"}, {"to", "0,2,3"}},
                          {{"R", "5"}, {"from", "0,0,2,3,3"}, {"to", "1,1,2,0,1"}}})},
  };
  return programs;
}

}  // namespace mscclc
