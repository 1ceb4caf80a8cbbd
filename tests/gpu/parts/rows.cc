// One row inside batches of 1 to 512 rows, all-reduced by name under each contract about the bits
// of sums: the bits that it has alone, eager and by graphs.
#include <fmt/format.h>

#include <cstdio>

#include "runtime/api/builtin_library.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/stage/graphs.h"
#include "tests/orders/row_batches.h"

namespace mscclc::testing {
namespace {

struct RowsCase {
  SumOrder order;
  Dtype dtype;
};

constexpr RowsCase kRowsCases[] = {
    {SumOrder::ranks, Dtype::bf16}, {SumOrder::ranks, Dtype::f32}, {SumOrder::ranks, Dtype::f16},
    {SumOrder::tree, Dtype::bf16},  {SumOrder::tree, Dtype::f32},
};
constexpr uint64_t kHidden = 2880;

std::string run_case(const StageOptions& options, Communicator& communicator, const RowsCase& c) {
  Diagnostics diagnostics;
  const auto graphs = make_graphs(options, communicator, diagnostics);
  auto library = builtin_library({}, diagnostics);
  if (graphs == nullptr || library == nullptr) return text(diagnostics);
  const auto made =
      Collectives::create(communicator, std::move(library), {.order = c.order}, diagnostics);
  if (made == nullptr) return text(diagnostics);
  const auto eager = [](StreamHandle, const auto& calls, Diagnostics& problems) {
    return calls(problems);
  };
  const auto by_graph = [&](StreamHandle stream, const auto& calls, Diagnostics& problems) {
    const auto graph = graphs->capture(stream, calls, problems);
    return graph != nullptr && graph->launch(stream, problems) &&
           communicator.synchronize(stream, problems);
  };
  uint64_t batches = 0;
  const RowBatches rows{.dtype = c.dtype, .hidden = kHidden};
  std::string fault = check_rows(*made, rows, eager, batches);
  if (fault.empty()) fault = check_rows(*made, rows, by_graph, batches);
  if (fault.empty() && communicator.rank() == 0) {
    fmt::print("{}, {}: {} batches, the same bits\n", name(c.order), info(c.dtype).name, batches);
    std::fflush(stdout);
  }
  return fault;
}

}  // namespace

bool check_row_batches(const StageOptions& options) {
  const Tally tally = run_series(
      options, std::size(kRowsCases),
      [&](Communicator& communicator, size_t i) {
        return run_case(options, communicator, kRowsCases[i]);
      },
      [&](size_t i, const std::string& fault) {
        fmt::print("{}, {}: FAILED\n{}\n", name(kRowsCases[i].order),
                   info(kRowsCases[i].dtype).name, fault);
        std::fflush(stdout);
      });
  fmt::print("rows at {}: {} right, {} wrong{}\n", text(options), tally.right, tally.wrong,
             left_out(tally.late));
  return tally.wrong == 0 && tally.right > 0;
}

}  // namespace mscclc::testing
