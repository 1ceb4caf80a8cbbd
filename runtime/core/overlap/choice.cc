#include "runtime/core/overlap/choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "ir/program/flag_regions.h"

namespace mscclc::overlap {
namespace {

/// Where nothing was measured and a plan with flags is asked for by name.
constexpr uint32_t kUsualChunks = 2, kUsualBudget = 16;
/// What copies by copy engines begin at multiples of, in bytes.
constexpr uint64_t kCopyAlign = 16;
/// More instances have chunks that are too small to be worth a block.
constexpr uint32_t kMaxInstances = 16;

std::string names_of(const std::vector<OverlapBackend>& backends) {
  std::vector<std::string> names;
  for (const OverlapBackend& backend : backends) names.push_back(backend.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// A row that fits, and the file that it is of; "": it is compiled in.
struct FoundRow {
  const MeasuredChoice* row = nullptr;
  std::string_view file = "";
};

/// The type whose rows serve where a table has none of A's: of as many bytes, at the same rate.
Dtype measured_as(Dtype dtype) {
  if (dtype == Dtype::f16) return Dtype::bf16;
  return dtype == Dtype::e5m2 ? Dtype::e4m3 : dtype;
}

FoundRow find_row(const OverlapConfig& config, const ChoiceFacts& facts) {
  const double intensity = intensity_of(config);
  const auto first_of = [&](std::span<const MeasuredChoice> rows) -> const MeasuredChoice* {
    for (const Dtype dtype : {config.a_dtype, measured_as(config.a_dtype)}) {
      const auto found = std::ranges::find_if(rows, [&](const MeasuredChoice& row) {
        return row.kind == config.kind && row.mode == facts.mode && row.ranks == facts.ranks &&
               (row.gemm == MeasuredGemm::any || !facts.given_gemm) && row.dtype == dtype &&
               row.least_rows <= config.m && config.m <= row.most_rows &&
               static_cast<double>(row.least_intensity) <= intensity &&
               intensity <= static_cast<double>(row.most_intensity);
      });
      if (found != rows.end()) return &*found;
    }
    return nullptr;
  };
  for (const MeasuredTable& table : facts.own) {
    if (const auto* const found = first_of(table.rows)) return {found, table.file};
  }
  return {first_of(facts.rows)};
}

/// The order in which a backend adds up, unless it keeps all. (NCCL's documents promise no more
/// than that ranks get the same sum; cuBLASMp's not even that, but where one rank alone gets it.)
SumOrder order_of(const OverlapConfig& config, std::string_view backend) {
  if (backend == kCublasMp && config.kind == OverlapKind::gemm_allreduce) return SumOrder::any;
  return backend == kNccl || backend == kCublasMp ? SumOrder::replicated : SumOrder::ranks;
}

bool keeps(const OverlapConfig& config, std::string_view backend) {
  return !info(config.kind).sums || backend == kSerial || backend == kAuto ||
         serves(order_of(config, backend), config.order.value_or(kDefaultOrder));
}

/// Why cuBLASMp does not serve an object; "": it may.
std::string why_no_cublasmp(const OverlapConfig& config, const ChoiceFacts& facts) {
  if (config.kind == OverlapKind::alltoall_gemm) return "it has no GEMM after an all-to-all";
  if (facts.given_gemm) return "it multiplies itself, so 'gemm' must be NULL";
  if (config.activation != Activation::none) return "what it gives has no activation";
  if (config.chunks == 0) return "";
  return fmt::format("it takes chunks of its own, so 'chunks' must be 0; it is {}", config.chunks);
}

/// Why copy engines cannot carry the chunks of a rank's part; "": they can. Those of AllGather may
/// differ in length, and need not divide.
std::string why_no_copies(const OverlapConfig& config, uint32_t ranks, uint32_t chunks) {
  if (config.kind == OverlapKind::allgather_gemm) return "";
  const uint64_t bytes = message_bytes(config), all = uint64_t{ranks} * chunks;
  if (config.m % ranks == 0 && bytes % (all * kCopyAlign) == 0) return "";
  return fmt::format(
      "copy engines need m to be a multiple of {}, and the message to be {} x {} chunks of a "
      "multiple of {} bytes; m = {}, and the message has {} bytes",
      ranks, ranks, chunks, kCopyAlign, config.m, bytes);
}

/// Fills in chunks and budget of a plan with flags. Why it does not fit; "": it does.
std::string fit_plan(const OverlapConfig& config, const ChoiceFacts& facts, OverlapChoice& choice) {
  if (choice.chunks == 0) choice.chunks = kUsualChunks;
  if (choice.chunks > kMaxFlags / facts.ranks) {
    return fmt::format(
        "chunks must be at most {} with {} ranks, as a plan has {} flags at most, one for each "
        "chunk of each rank; chunks = {}",
        kMaxFlags / facts.ranks, facts.ranks, kMaxFlags, choice.chunks);
  }
  if (choice.backend == kCopyEngine) {
    const std::string why_not = why_no_copies(config, facts.ranks, choice.chunks);
    if (!why_not.empty()) return why_not;
  }
  const uint32_t most = most_budget(facts.multiprocessors);
  const uint32_t least = least_blocks(config.kind, choice.backend, choice.chunks);
  if (choice.budget == 0) {
    choice.budget = choice.backend == kCopyEngine ? least : std::max(least, kUsualBudget);
    if (most != 0) choice.budget = std::min(choice.budget, most);
  }
  if (most != 0 && choice.budget > most) {
    return fmt::format(
        "the budget must be at most {} of the {} multiprocessors, as {} runs and their GEMMs may "
        "need room at once; budget = {}",
        most, facts.multiprocessors, kAtOnce, choice.budget);
  }
  if (least <= choice.budget) return "";
  return fmt::format("{} chunks need {} thread blocks, a multiprocessor each; budget = {}",
                     choice.chunks, least, choice.budget);
}

/// What GEMMs leave free beside no plan: where chunks are asked for, as much as beside one, so that
/// they are the same, to the bit.
uint32_t budget_of_same(const OverlapConfig& config, const ChoiceFacts& facts) {
  if (config.chunks == 0) return 0;
  if (config.budget != 0) return config.budget;
  OverlapChoice like{.backend = std::string(kFlagged), .chunks = config.chunks, .why = ""};
  return fit_plan(config, facts, like).empty() ? like.budget : 0;
}

/// What a row says, where the config does not.
OverlapChoice choice_of(const MeasuredChoice& row, const OverlapConfig& config) {
  return {.backend = std::string(row.backend),
          .chunks = config.chunks != 0 ? config.chunks : row.chunks,
          .budget = config.budget != 0 ? config.budget : row.budget,
          .why = ""};
}

/// Why the backend of a row that fits does not serve; "": it does.
std::string why_not_measured(const MeasuredChoice& row, const OverlapConfig& config,
                             const ChoiceFacts& facts) {
  if (row.backend == kNccl && !facts.nccl.empty()) return facts.nccl;
  if (runs_beside(row.backend) && facts.one_queue && !info(config.kind).sums) {
    return "CUDA_DEVICE_MAX_CONNECTIONS is 1: nothing would overlap";
  }
  if (runs_beside(row.backend)) {
    OverlapChoice choice = choice_of(row, config);
    const std::string why_not = fit_plan(config, facts, choice);
    if (!why_not.empty()) return why_not;
  }
  return keeps(config, row.backend) ? "" : "it does not keep the order";
}

/// What `auto` takes.
void pick(const OverlapConfig& config, const ChoiceFacts& facts, OverlapChoice& choice) {
  const auto shape = fmt::format("{} ranks, {}, {} rows and {:.0f} flops a byte{}", facts.ranks,
                                 mscclc::info(config.a_dtype).name, config.m, intensity_of(config),
                                 facts.mode == RunMode::captured ? ", in graphs" : "");
  choice.backend = kSerial;
  const auto [row, file] = find_row(config, facts);
  const std::string by = file.empty() ? "" : fmt::format(", by '{}'", file);
  if (row == nullptr) {
    choice.why = "nothing was measured for " + shape;
    return;
  }
  const std::string with =
      row->dtype == config.a_dtype ? "" : fmt::format(" with {}", mscclc::info(row->dtype).name);
  const std::string why_not = why_not_measured(*row, config, facts);
  if (!why_not.empty()) {
    choice.why =
        fmt::format("{} was measured{} for {}{}, but {}", row->backend, with, shape, by, why_not);
    return;
  }
  choice = choice_of(*row, config);
  choice.why =
      fmt::format("measured{} for {}: {} to {} rows, {} to {} flops a byte{}", with, shape,
                  row->least_rows, row->most_rows, row->least_intensity, row->most_intensity, by);
}

}  // namespace

bool has_one_queue() {
  const char* const word = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  return word != nullptr && std::string_view(word) == "1";
}

double intensity_of(const OverlapConfig& config) {
  double flops = 0;
  for (const uint64_t n : config.n) {
    flops += 2.0 * static_cast<double>(config.m) * static_cast<double>(config.k) *
             static_cast<double>(n);
  }
  return flops / static_cast<double>(message_bytes(config));
}

uint32_t instances_for(OverlapKind kind, uint32_t chunks, uint32_t budget) {
  const uint32_t each = info(kind).blocks_a_chunk * chunks;
  return std::clamp(budget / each, 1u, kMaxInstances);
}

std::optional<OverlapChoice> choose(const OverlapConfig& config, const ChoiceFacts& facts,
                                    Diagnostics& diagnostics) {
  OverlapChoice choice{.backend = config.backend,
                       .chunks = config.chunks,
                       .budget = config.budget,
                       .why = "asked for by name"};
  const std::vector<OverlapBackend> backends =
      overlap_backends({.nccl = facts.nccl, .cublasmp = facts.cublasmp});
  const auto found = std::ranges::find(backends, config.backend, &OverlapBackend::name);
  if (found == backends.end()) {
    refuse_overlap(
        config,
        fmt::format("there is no backend '{}'; there are {}", config.backend, names_of(backends)),
        diagnostics);
    return std::nullopt;
  }
  if (!found->available) {
    refuse_overlap(config, fmt::format("the backend '{}' is {}", found->name, found->why),
                   diagnostics);
    return std::nullopt;
  }
  if (config.backend == kCublasMp) {
    const std::string why_not = why_no_cublasmp(config, facts);
    if (!why_not.empty()) {
      refuse_overlap(config, "the backend 'cublasmp' cannot serve: " + why_not, diagnostics);
      return std::nullopt;
    }
  }
  if (config.backend == kAuto) pick(config, facts, choice);
  const bool by_plan = runs_beside(choice.backend);
  if (facts.ranks > 1 && !keeps(config, choice.backend)) {
    refuse_overlap(
        config,
        fmt::format("the order must be '{}', which the backend '{}' does not keep: its own is "
                    "'{}'; 'serial' keeps all",
                    name(config.order.value_or(kDefaultOrder)), choice.backend,
                    name(order_of(config, choice.backend))),
        diagnostics);
    return std::nullopt;
  }
  if (facts.ranks > 1 && by_plan) {
    const std::string why_not = fit_plan(config, facts, choice);
    if (!why_not.empty()) {
      refuse_overlap(config, why_not, diagnostics);
      return std::nullopt;
    }
  }
  if (facts.ranks == 1) choice.why = "one rank multiplies, and nothing else";
  if (!by_plan && choice.backend != kCublasMp) choice.budget = budget_of_same(config, facts);
  if (facts.ranks == 1) choice.budget = 0;
  return choice;
}

std::optional<OverlapChoice> choose_on_gpus(const OverlapConfig& config, uint32_t ranks,
                                            RunMode mode, std::span<const MeasuredTable> own,
                                            Diagnostics& diagnostics) {
  if (!check_config(config, ranks, diagnostics)) return std::nullopt;
  return choose(config, {.ranks = ranks, .mode = mode, .one_queue = has_one_queue(), .own = own},
                diagnostics);
}

std::string text_of(const OverlapChoice& choice) {
  std::string text = choice.backend;
  if (choice.chunks != 0) text += fmt::format(", chunks {}", choice.chunks);
  if (choice.budget != 0) text += fmt::format(", budget {}", choice.budget);
  return text;
}

}  // namespace mscclc::overlap

namespace mscclc {

std::vector<OverlapBackend> overlap_backends(const OverlapMissing& missing) {
  using namespace overlap;
  const auto backend = [&](std::string_view name, std::string_view what,
                           const std::string& library) {
    const std::string& lacks = missing.device.empty() ? library : missing.device;
    const bool may_be_given = lacks.empty() && name != kCublasMp;
    const std::string& why_not = lacks.empty() ? missing.gemms : lacks;
    if (why_not.empty()) return OverlapBackend{std::string(name), true, std::string(what)};
    return OverlapBackend{
        std::string(name), false,
        (may_be_given ? "not there, unless 'gemm' is given: " : "not there: ") + why_not};
  };
  std::string cublasmp = "cuBLASMp's GEMMs, which communicate themselves";
  if (!missing.cublasmp_first_uncaptured.empty()) {
    cublasmp += "; an object's first run cannot be captured: " + missing.cublasmp_first_uncaptured;
  }
  return {
      backend(kAuto, "what was measured to be the fastest; else serial", ""),
      backend(kFlagged, "a plan with flags beside GEMMs of chunks; sums in the order of the ranks",
              ""),
      backend(kCopyEngine,
              "the same, with copies by copy engines: GEMMs have all multiprocessors but one", ""),
      backend(kSerial, "a collective of this library, then the GEMM; or the reverse", ""),
      backend(kNccl, "NCCL's collective, then the GEMM; or the reverse", missing.nccl),
      backend(kCublasMp, cublasmp, missing.cublasmp)};
}

}  // namespace mscclc
