#include "tests/random_programs/known_holes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace mscclc::random_programs {
namespace {

std::string repeated(const char* op, uint32_t n) {
  std::string out;
  for (uint32_t i = 0; i < n; ++i) out += fmt::format("{}{}", i == 0 ? "" : " ; ", op);
  return out;
}

/// Rank 0 fills units of rank 1, without asking whether they are free.
constexpr const char* kNoFlowControl = R"(program nofc
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
rank 0 {
  channel up = memory(1)
  tb 0 { wait up relaxed }
  pipeline unit: 64 { tb 0 { put up.s[0] <- input[0] ; signal up } }
}
rank 1 {
  buffer s[1] units: 3
  channel up = memory(0)
  tb 0 { signal up relaxed }
  pipeline unit: 64 { tb 0 { wait up ; copy output[0] <- s[0] } }
}
)";

/// Units of rank 1 with credits by signals.
std::string signalled(uint32_t units, uint32_t credits) {
  return fmt::format(R"(program signalled
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
rank 0 {{
  channel up = memory(1)
  pipeline unit: 16 {{ tb 0 {{ wait up ; put up.s[0] <- input[0] ; signal up }} }}
  tb 0 {{ {} }}
}}
rank 1 {{
  buffer s[1] units: {}
  channel up = memory(0)
  tb 0 {{ {} }}
  pipeline unit: 16 {{ tb 0 {{ wait up ; copy output[0] <- s[0] ; signal up }} }}
}}
)",
                     repeated("wait up", credits), units, repeated("signal up", credits));
}

/// Units within a rank, with credits by a semaphore.
std::string by_semaphore(uint32_t units, uint32_t credits) {
  return fmt::format(R"(ir 1
program by_semaphore
collective custom(ranks: 1, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
launch split: true
rank 0 {{
  buffer s[1] units: {}
  semaphore free = {}, full
  tb 0 {{
    pipeline unit: 16, loop: 0 {{
      acquire free
      sync
      copy s[0] <- input[0]
      sync
      release full
    }}
  }}
  tb 1 {{
    pipeline unit: 16, loop: 0 {{
      acquire full
      sync
      copy output[0] <- s[0]
      sync
      release free
    }}
  }}
}}
)",
                     units, credits);
}

/// The second pipeline reads each unit before it fills it: the last rounds of the first.
constexpr const char* kStale = R"(ir 1
program stale
collective custom(ranks: 1, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
launch split: true
rank 0 {
  buffer t[1] units: 2
  tb 0 {
    pipeline unit: 16, loop: 0 {
      copy t[0] <- input[0]
      sync
    }
    pipeline unit: 16, loop: 1 {
      copy output[0] <- t[0]
      sync
      copy t[0] <- input[0]
      sync
    }
  }
}
)";

/// Two pipelines in a row, which the ranks run in different orders: more rounds than credits hang.
std::string crossed(uint32_t credits) {
  const std::string waits = repeated("wait a", credits), signals = repeated("signal a", credits);
  const std::string more = repeated("wait b", credits), others = repeated("signal b", credits);
  return fmt::format(R"(program crossed
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
ensure output[0] at 0 = input[0] at 1
rank 0 {{
  buffer t[1] units: {0}
  channel a = memory(1)
  channel b = memory(1)
  tb 0 {{ {2} }}
  pipeline unit: 16 {{ tb 0 {{ wait a ; put a.s[0] <- input[0] ; signal a }} }}
  pipeline unit: 16 {{ tb 0 {{ wait b ; copy output[0] <- t[0] ; signal b }} }}
  tb 0 {{ {3} }}
}}
rank 1 {{
  buffer s[1] units: {0}
  channel a = memory(0)
  channel b = memory(0)
  tb 0 {{ {1} }}
  pipeline unit: 16 {{ tb 0 {{ wait b ; put b.t[0] <- input[0] ; signal b }} }}
  pipeline unit: 16 {{ tb 0 {{ wait a ; copy output[0] <- s[0] ; signal a }} }}
  tb 0 {{ {4} }}
}}
)",
                     credits, signals, others, waits, more);
}

/// A barrier has no message, so no block waits for a packet.
constexpr const char* kBarrier = R"(ir 1
program barrier_by_packets
collective barrier(ranks: 2)
launch split: true
rank 0 {
  buffer s[1] packets: LL16, copies: 2
  buffer t[1]
  channel c = memory(1) to c
  tb 0 {
    put_packets c.s[0] <- t[0]
    unpack_packets t[0] <- s[0]
  }
}
rank 1 {
  buffer s[1] packets: LL16, copies: 2
  buffer t[1]
  channel c = memory(0) to c
  tb 0 {
    put_packets c.s[0] <- t[0]
    unpack_packets t[0] <- s[0]
  }
}
)";

}  // namespace

std::vector<KnownHole> known_holes() {
  std::vector<KnownHole> all = {{"no flow control", kNoFlowControl, 0},
                                {"3 units, 4 credits by signals", signalled(3, 4), 0},
                                {"12 units, 13 credits by signals", signalled(12, 13), 0},
                                {"9 units, 10 credits by a semaphore", by_semaphore(9, 10), 0},
                                {"units of the pipeline before", kStale, 0},
                                {"two pipelines in other orders", crossed(5), 0},
                                {"a barrier by packets", kBarrier, 0}};
  for (auto* const more : {holes_of_version_3, holes_of_version_8}) {
    std::ranges::move(more(), std::back_inserter(all));
  }
  return all;
}

}  // namespace mscclc::random_programs
