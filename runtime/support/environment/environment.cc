#include "runtime/support/environment/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <vector>

namespace mscclc {
namespace {

constexpr VariableInfo kTable[] = {
#define ENV(name, group, kind, fallback, least, most, help) \
  {Variable::name, #name, VariableGroup::group, VariableKind::kind, fallback, least, most, help},
#include "runtime/support/environment/environment.def"
#undef ENV
};

/// Variables whose values are words.
struct Words {
  Variable variable;
  std::array<std::string_view, 5> allowed;
};
constexpr Words kWords[] = {
    {Variable::MSCCLC_SOCKET_FAMILY, {"ipv4", "ipv6"}},
    {Variable::MSCCLC_LANE, {"sockets", "verbs"}},
    {Variable::MSCCLC_IBV_MODE, {"host", "host-no-atomic"}},
    {Variable::MSCCLC_KERNELS, {"cache", "now", "off"}},
    {Variable::MSCCLC_PROOF, {"require", "skip"}},
    {Variable::MSCCLC_ORDER,
     {
#define ORDER(name, summary) #name,
#include "ir/contract/orders.def"
#undef ORDER
     }},
    {Variable::MSCCLC_NCCL_COMM, {"init", "lazy"}},
    {Variable::MSCCLC_DEVICE, {"gpu", "host"}},
    {Variable::MSCCLC_SYMMETRIC_MEMORY, {"native", "torch", "cuda", "nccl", "nvshmem"}},
};

constexpr std::string_view kOurs = "MSCCLC_";

/// Of the process.
struct {
  std::atomic<bool> has_warned{false};
  std::atomic<Environment::Complete> complete{nullptr};
} shared;

/// Bytes of UTF-8 among them: folders have names in all languages.
bool is_printable(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; }

void report(const VariableInfo& variable, std::string_view value, const std::string& allowed,
            Diagnostics& diagnostics) {
  const std::string shown = variable.kind == VariableKind::secret
                                ? fmt::format("has {} bytes", value.size())
                                : "is " + quoted(value);
  diagnostics.error("bad-variable", {},
                    fmt::format("{} {}; allowed is {}", variable.name, shown, allowed));
}

const Words* row_of_words(const VariableInfo& variable) {
  const auto words = std::find_if(std::begin(kWords), std::end(kWords),
                                  [&](const Words& w) { return w.variable == variable.variable; });
  return words == std::end(kWords) ? nullptr : words;
}

/// What is allowed, for a message: the words, where the variable has some.
std::string allowed_text(const VariableInfo& variable) {
  const Words* words = row_of_words(variable);
  if (words == nullptr) {
    return fmt::format("printable text of {} to {} bytes", variable.least, variable.most);
  }
  return fmt::format("'{}'", fmt::join(words_of(variable.variable), "' or '"));
}

bool is_allowed(const VariableInfo& variable, std::string_view value) {
  if (const Words* words = row_of_words(variable))
    return std::ranges::count(words->allowed, value) > 0;
  return value.size() >= variable.least && value.size() <= variable.most &&
         std::ranges::all_of(value, is_printable);
}

}  // namespace

std::span<const VariableInfo> variable_table() { return kTable; }

std::vector<std::string_view> words_of(Variable variable) {
  const Words* words = row_of_words(info(variable));
  if (words == nullptr) return {};
  std::vector<std::string_view> list(words->allowed.begin(), words->allowed.end());
  std::erase(list, "");
  return list;
}

const VariableInfo& info(Variable variable) { return kTable[static_cast<size_t>(variable)]; }

Environment::Values Environment::values_of_process() {
  Values values;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    values.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return values;
}

Environment Environment::of_process() {
  Values values = values_of_process();
  if (const Complete more = shared.complete) more(values);
  return Environment(std::move(values));
}

void Environment::complete_with(Complete more) { shared.complete = more; }

std::string_view Environment::raw(Variable variable) const {
  const auto found = values_.find(info(variable).name);
  return found == values_.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<uint64_t> Environment::number(Variable variable, Diagnostics& diagnostics) const {
  const VariableInfo& row = info(variable);
  const std::string_view value = has(variable) ? raw(variable) : row.fallback;
  if (value.empty()) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool plain = error == std::errc() && end == value.data() + value.size() &&
                     (value.size() == 1 || value.front() != '0');
  if (plain && number >= row.least && number <= row.most) return number;
  report(row, value,
         fmt::format("a whole number{} from {} to {}",
                     row.kind == VariableKind::seconds ? " of seconds" : "", row.least, row.most),
         diagnostics);
  return std::nullopt;
}

std::optional<std::string> Environment::text(Variable variable, Diagnostics& diagnostics) const {
  const VariableInfo& row = info(variable);
  const std::string_view value = has(variable) ? raw(variable) : row.fallback;
  if (value.empty()) return std::nullopt;
  if (is_allowed(row, value)) return std::string(value);
  report(row, value, allowed_text(row), diagnostics);
  return std::nullopt;
}

std::optional<SumOrder> Environment::order(Diagnostics& diagnostics) const {
  const auto word = text(Variable::MSCCLC_ORDER, diagnostics);
  return word ? find_sum_order(*word) : std::nullopt;
}

std::optional<std::chrono::milliseconds> Environment::timeout(Diagnostics& diagnostics) const {
  const auto seconds = number(Variable::MSCCLC_TIMEOUT, diagnostics);
  if (!seconds) return std::nullopt;
  return *seconds == 0 ? kForever : std::chrono::milliseconds(std::chrono::seconds(*seconds));
}

void Environment::check(const VariableInfo& row, Diagnostics& diagnostics) const {
  if (row.kind == VariableKind::count || row.kind == VariableKind::seconds) {
    (void)number(row.variable, diagnostics);
  } else {
    (void)text(row.variable, diagnostics);
  }
}

bool Environment::check_ours(Diagnostics& diagnostics) const {
  Diagnostics found;
  for (const VariableInfo& row : kTable) {
    if (row.group == VariableGroup::ours && has(row.variable)) check(row, found);
  }
  for (const Diagnostic& mistake : found.all()) diagnostics.add(mistake);
  return !found.has_errors();
}

void Environment::warn_of_unknown(Diagnostics& diagnostics) const {
  std::vector<std::string_view> names;
  for (const VariableInfo& row : kTable) {
    if (row.group == VariableGroup::ours) names.push_back(row.name.substr(kOurs.size()));
  }
  for (const auto& [name, value] : values_) {
    if (!name.starts_with(kOurs)) continue;
    const std::string_view own = std::string_view(name).substr(kOurs.size());
    if (std::find(names.begin(), names.end(), own) != names.end()) continue;
    const std::string near = nearest(own, names);  // what all begin with makes nothing near
    diagnostics.warning(
        "unknown-variable", {},
        fmt::format("nothing reads the environment variable {}{}", quoted(name),
                    near.empty() ? "" : fmt::format("; did you mean '{}{}'?", kOurs, near)));
  }
}

void warn_of_unknown_once(const Environment& environment, Diagnostics& diagnostics) {
  if (!shared.has_warned.exchange(true)) environment.warn_of_unknown(diagnostics);
}

void forget_unknown_warning() { shared.has_warned = false; }

}  // namespace mscclc
