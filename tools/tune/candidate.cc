#include "tools/tune/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compiler/compile.h"

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
constexpr std::string_view kFormats[] = {"LL8", "LL16", "LL128", "sentinel"};

std::optional<uint32_t> number_of(const std::string& text) {
  uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || after != end) return std::nullopt;
  return number;
}

/// Other numbers for a knob: half, two thirds, one and a half, double.
std::vector<uint32_t> other_numbers(const Knob& knob, uint32_t value, uint32_t most) {
  std::vector<uint32_t> numbers;
  for (const auto& [times, parts] : {std::pair{1u, 2u}, {2u, 3u}, {3u, 2u}, {2u, 1u}}) {
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

}  // namespace

std::string text_of(const LibraryChoice& choice) {
  return choice.params.empty() ? choice.program
                               : fmt::format("{}:{}", choice.program, choice.params_text());
}

std::vector<LibraryRow> neighbours(const LibraryRow& row, const LibraryCall& call,
                                   const Limits& limits) {
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
    for (const uint32_t other : other_numbers(*knob, *number, most)) {
      add(p, std::to_string(other));
    }
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
  if (!program) return {};
  for (const Rank& rank : program->ranks) {
    if (limits_.max_blocks != 0 && rank.blocks > limits_.max_blocks) return {};
  }
  Plan plan{std::make_shared<const Program>(*std::move(program)), nullptr};
  plan.model = std::make_shared<cost::Model>(*plan.program);
  return plan;
}

const Plans::Plan& Plans::of(const LibraryChoice& choice, const LibraryCall& call) {
  const auto [at, fresh] =
      plans_.try_emplace(fmt::format("{} {} {}", text_of(choice), name(call.kind), call.ranks));
  if (fresh) at->second = compiled(choice, call);
  return at->second;
}

std::optional<double> Plans::predict(const LibraryChoice& choice, const LibraryCall& call) {
  const Plan& plan = of(choice, call);
  if (plan.program == nullptr) return std::nullopt;
  Diagnostics diagnostics;
  const auto timeline = plan.model->predict(cost::call_of(*plan.program, call.bytes, call.dtype),
                                            prior_, diagnostics);
  if (!timeline) return std::nullopt;
  return timeline->back_to_back_ns;
}

}  // namespace mscclc::tune
