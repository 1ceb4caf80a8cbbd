#include "runtime/api/tuner_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "ir/diagnostics/printable.h"
#include "ir/support/result.h"

namespace mscclc {
namespace {

constexpr std::array kKinds = {CollectiveKind::broadcast, CollectiveKind::reduce,
                               CollectiveKind::allgather, CollectiveKind::reducescatter,
                               CollectiveKind::allreduce};
constexpr std::string_view kAlgorithms[] = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat", "-1"};
constexpr std::string_view kProtocols[] = {"ll", "ll128", "simple", "-1"};
constexpr size_t kLeastFields = 8, kMaxFields = 10;
constexpr uint64_t kMaxOf32Bits = 4294967295;
constexpr std::string_view kBlanks = " \t";

template <class List, class T>
bool has(const List& list, const T& value) {
  return std::ranges::find(list, value) != std::end(list);
}

/// A plan's name that a line can hold.
bool is_writable(std::string_view name) {
  return !name.empty() && name.find_first_of(", \t\r\n#") == std::string_view::npos;
}

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, out);
  return result.ec == std::errc() && result.ptr == end;
}

/// A number, or -1 for any.
bool read_optional(std::string_view text, std::optional<uint32_t>& out) {
  if (text == "-1") return true;
  return read_number(text, out.emplace());
}

std::string_view trimmed(std::string_view text) {
  const size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t comma = std::min(line.find(','), line.size());
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == line.size()) return fields;
    line.remove_prefix(comma + 1);
  }
}

Result<TunerLine> read_line(std::string_view text) {
  TunerLine line;
  const std::vector<std::string_view> fields = split(text);
  if (fields.size() < kLeastFields || fields.size() > kMaxFields) {
    return Error{
        fmt::format("expected {} to {} fields, got {}", kLeastFields, kMaxFields, fields.size())};
  }
  const auto kind = find_collective(fields[0]);
  if (!kind || !has(kKinds, *kind)) {
    return Error{
        fmt::format("unknown collective {}; allowed are broadcast, reduce, allgather, "
                    "reducescatter and allreduce",
                    mscclc::quoted(fields[0]))};
  }
  line.kind = *kind;
  if (!read_number(fields[1], line.min) || !read_number(fields[2], line.max) ||
      line.min > line.max) {
    return Error{
        fmt::format("expected two sizes in bytes, the smaller first, up to {}", kTunerNoEnd)};
  }
  if (!is_writable(fields[3])) return Error{"expected an algorithm or a plan"};
  line.algorithm = fields[3];
  if (!has(kProtocols, fields[4])) {
    return Error{fmt::format("unknown protocol {}; allowed are ll, ll128, simple and -1",
                             mscclc::quoted(fields[4]))};
  }
  line.protocol = fields[4];
  std::optional<uint32_t>* const numbers[] = {&line.channels, &line.nodes, &line.ranks,
                                              &line.pipe_ops, &line.registered};
  for (size_t i = 5; i < fields.size(); ++i) {
    if (read_optional(fields[i], *numbers[i - 5])) continue;
    return Error{fmt::format("field {}: expected a number, or -1 for any", i + 1)};
  }
  return line;
}

/// Whether it has a size of 4 GiB or more.
bool is_large(const TunerLine& line) { return line.max > kMaxOf32Bits; }

/// The larger size, as a file has it in which lines are `large` or not.
uint64_t last_size(const TunerLine& line, bool large) {
  if (large) return line.max;
  return line.max == kTunerNoEnd ? kMaxOf32Bits : std::min(line.max, kMaxOf32Bits - 1);
}

std::string number_text(const std::optional<uint32_t>& number) {
  return number ? std::to_string(*number) : "-1";
}

}  // namespace

bool TunerLine::is_nccl() const { return has(kAlgorithms, algorithm); }

bool TunerLine::fits(const PlanRequest& request) const {
  const LibraryCall& call = request.call;
  const bool size = min <= call.bytes && call.bytes <= max;
  return kind == call.kind && size && nodes.value_or(call.nodes) == call.nodes &&
         ranks.value_or(call.ranks) == call.ranks &&
         registered.value_or(request.registered ? 1 : 0) == (request.registered ? 1u : 0u);
}

std::optional<std::vector<TunerLine>> read_tuner_csv(std::string_view text, const std::string& name,
                                                     Diagnostics& diagnostics) {
  std::vector<TunerLine> lines;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    auto read = read_line(line);
    if (!read) {
      diagnostics.error("tuner-line", {},
                        fmt::format("{}:{}: {}", name, number, read.error().text()));
      return std::nullopt;
    }
    lines.push_back(*std::move(read));
  }
  if (std::ranges::any_of(lines, is_large)) return lines;
  for (TunerLine& line : lines) {
    if (line.max == kMaxOf32Bits) line.max = kTunerNoEnd;
  }
  return lines;
}

std::optional<std::string> write_tuner_csv(std::span<const TunerLine> lines,
                                           Diagnostics& diagnostics) {
  std::string text =
      "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,"
      "regBuff\n";
  const bool large = std::ranges::any_of(lines, [](const TunerLine& line) {
    return line.min > kMaxOf32Bits || (line.max != kTunerNoEnd && is_large(line));
  });
  for (const TunerLine& line : lines) {
    if (!has(kKinds, line.kind) || !is_writable(line.algorithm)) {
      diagnostics.error("tuner-line", {},
                        fmt::format("NCCL's tuner files have no line for {} by {}", name(line.kind),
                                    mscclc::quoted(line.algorithm)));
      return std::nullopt;
    }
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{}\n", name(line.kind), line.min, last_size(line, large),
        line.algorithm, line.protocol, number_text(line.channels), number_text(line.nodes),
        number_text(line.ranks), number_text(line.pipe_ops), number_text(line.registered));
  }
  return text;
}

PlanSelector tuner_selector(std::vector<TunerLine> lines) {
  return [lines = std::move(lines)](const PlanRequest& request) -> Selection {
    const auto line =
        std::ranges::find_if(lines, [&](const TunerLine& l) { return l.fits(request); });
    if (line == lines.end()) return {};
    if (line->is_nccl()) return {.kind = Selection::Kind::none};
    return {.kind = Selection::Kind::plan, .plan = line->algorithm};
  };
}

}  // namespace mscclc
