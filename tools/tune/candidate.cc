#include "tools/tune/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>

#include "compiler/compile.h"
#include "compiler/proof_gate.h"

namespace mscclc::tune {
namespace {

/// A parameter that may be changed: what it may be at least and at most, and a multiple of.
struct Knob {
  std::string_view name;
  uint32_t least, most, step;
};
constexpr Knob kKnobs[] = {{"B", 1, 256, 1},   {"T", 32, 1024, 32}, {"threads", 32, 1024, 32},
                           {"I", 1, 64, 1},    {"S", 1, 64, 1},     {"U", 1, 1024, 1},
                           {"own", 1, 256, 1}, {"C", 1, 4, 1},      {"depth", 1, 16, 1}};
/// What a row that does not name them may have as well, if its program has such parameters.
constexpr std::pair<std::string_view, std::string_view> kMore[] = {
    {"own", "16"},     {"own", "64"},      {"S", "2"},        {"S", "4"},
    {"apart", "true"}, {"leaves", "true"}, {"spread", "true"}};
constexpr std::string_view kFormats[] = {"LL8", "LL16", "LL128", "sentinel"};

std::optional<uint32_t> number_of(const std::string& text) {
  uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || after != end) return std::nullopt;
  return number;
}

/// Half, two thirds, one and a half, double; and, where trials cost little, an eighth more or less.
constexpr std::pair<uint32_t, uint32_t> kSteps[] = {{1, 2}, {2, 3}, {3, 2}, {2, 1}, {7, 8}, {9, 8}};
constexpr size_t kCoarseSteps = 4;

/// Other numbers for a knob.
std::vector<uint32_t> other_numbers(const Knob& knob, uint32_t value, uint32_t most, bool fine) {
  std::vector<uint32_t> numbers;
  for (const auto& [times, parts] :
       std::span(kSteps).first(fine ? std::size(kSteps) : kCoarseSteps)) {
    const uint32_t other = value * times / parts / knob.step * knob.step;
    const bool fits = other >= knob.least && other <= most && other != value;
    if (fits && std::ranges::count(numbers, other) == 0) numbers.push_back(other);
  }
  return numbers;
}

const Knob* knob_of(std::string_view name) {
  const auto at = std::ranges::find(kKnobs, name, &Knob::name);
  return at == std::end(kKnobs) ? nullptr : at;
}

bool may_take(std::string_view format, const LibraryCall& call, const Limits& limits) {
  if (format == "LL128") return limits.lines;
  return format != "sentinel" || info(call.dtype).kind == DtypeKind::kFloat;
}

/// Do a program's sums keep to the call's order? What it promises is proved when it is written;
/// what it does not promise it may keep all the same.
bool serves_order(const Program& program, const LibraryCall& call) {
  if (!order_matters(call) || serves(program.contract.order, call.order)) return true;
  ProofGate gate;
  Diagnostics diagnostics;  // what is wrong is no candidate
  return gate.pass(program, diagnostics) && gate.proof && keeps_order(*gate.proof, call);
}

}  // namespace

std::string text_of(const LibraryChoice& choice) {
  return choice.params.empty() ? choice.program
                               : fmt::format("{}:{}", choice.program, choice.params_text());
}

std::vector<LibraryRow> neighbours(const LibraryRow& row, const LibraryCall& call,
                                   const Limits& limits, bool fine) {
  std::vector<LibraryRow> all;
  const auto add = [&](size_t param, std::string value) {
    all.push_back(row);
    all.back().choice.params[param].second = std::move(value);
    restrict_by_format(all.back());
  };
  for (size_t p = 0; p < row.choice.params.size(); ++p) {
    const auto& [name, value] = row.choice.params[p];
    if (name == "F") {
      for (const std::string_view format : kFormats) {
        if (format != value && may_take(format, call, limits)) add(p, std::string(format));
      }
    }
    const Knob* knob = knob_of(name);
    const auto number = number_of(value);
    if (knob == nullptr || !number) continue;
    const bool blocks = name == "B" && limits.max_blocks != 0;
    const uint32_t most = blocks ? std::min(knob->most, limits.max_blocks) : knob->most;
    for (const uint32_t other : other_numbers(*knob, *number, most, fine)) {
      add(p, std::to_string(other));
    }
  }
  return all;
}

std::vector<LibraryRow> extended(const LibraryRow& row) {
  std::vector<LibraryRow> all;
  for (const auto& more : kMore) {
    const auto same = [&](const auto& param) { return param.first == more.first; };
    if (std::ranges::any_of(row.choice.params, same)) continue;
    all.push_back(row);
    all.back().choice.params.emplace_back(more);
  }
  return all;
}

void restrict_by_format(LibraryRow& row) {
  for (const auto& [name, value] : row.choice.params) {
    if (name != "F") continue;
    row.dtypes = all_dtypes(value == "sentinel");
    row.links = value == "LL128" ? std::optional(LinkKind::nvlink) : std::nullopt;
  }
}

Plans::Plan Plans::compiled(const LibraryChoice& choice, const LibraryCall& call) const {
  const std::optional<std::string> text = read_(choice.program);
  if (!text) return {};
  Sources sources;
  Diagnostics diagnostics;  // what does not compile is no candidate
  const FileId file = sources.add(choice.program + ".mscl", *text);
  FrontEndOptions options;
  options.defines = choice.defines(call);
  std::optional<Program> program = compile(sources, file, options, {}, diagnostics);
  if (!program || !serves_order(*program, call)) return {};
  for (const Rank& rank : program->ranks) {
    if (limits_.max_blocks != 0 && rank.blocks > limits_.max_blocks) return {};
  }
  Plan plan{std::make_shared<const Program>(*std::move(program)), nullptr, nullptr};
  plan.model = std::make_shared<cost::Model>(*plan.program);
  plan.predicted = std::make_shared<Plan::Predicted>();
  return plan;
}

const Plans::Plan& Plans::of(const LibraryChoice& choice, const LibraryCall& call) {
  const auto [at, fresh] = plans_.try_emplace(
      fmt::format("{} {} {} {}", text_of(choice), name(call.kind), call.ranks, name(call.order)));
  if (fresh) at->second = compiled(choice, call);
  return at->second;
}

std::optional<double> Plans::predict(const LibraryChoice& choice, const LibraryCall& call) {
  const Plan& plan = of(choice, call);
  if (plan.program == nullptr) return std::nullopt;
  const auto [at, fresh] = plan.predicted->try_emplace({call.bytes, call.dtype});
  if (!fresh) return at->second;
  Diagnostics diagnostics;
  const auto timeline = plan.model->predict(cost::call_of(*plan.program, call.bytes, call.dtype),
                                            prior_, diagnostics);
  if (timeline) at->second = timeline->back_to_back_ns;
  return at->second;
}

}  // namespace mscclc::tune
