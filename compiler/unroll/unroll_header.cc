// Header lines: names, parameters, conditions. The contract is in unroll_contract.cc, `select` and
// `launch` are in unroll_options.cc.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "compiler/unroll/unroll_state.h"

namespace mscclc {
namespace {

/// A number as programs and `-D` write it: 42, 0x2a, 1_000, 512KiB.
bool read_number(std::string_view text, int64_t& out) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int shift = 0;
  for (const auto& [unit, bits] :
       {std::pair("KiB", 10), std::pair("MiB", 20), std::pair("GiB", 30)}) {
    if (!text.ends_with(unit)) continue;
    shift = bits;
    text.remove_suffix(3);
  }
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  uint64_t v = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), v, base);
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (end.ec != std::errc() || end.ptr != digits.data() + digits.size() || v > kMost >> shift) {
    return false;
  }
  out = static_cast<int64_t>(v << shift);
  if (negative) out = -out;
  return true;
}

/// 1,0,2 with or without brackets.
bool read_list(std::string_view text, std::vector<int64_t>& out) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    int64_t v = 0;
    if (!read_number(item, v)) return false;
    out.push_back(v);
    if (comma + 1 == text.size()) return false;  // a comma with nothing after
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

}  // namespace

void Unroller::header(const Item& item) {
  const ast::Stmt& s = *item.stmt;
  op_place_ = s.keyword;
  switch (s.kind) {
    case ast::StmtKind::ir:
      if (const auto from = s.as<ast::Version>().from; !from.empty()) {
        builder_.program().files.emplace_back(from);
      }
      break;
    case ast::StmtKind::program:
      builder_.program().name = ast_.text(s.as<ast::ProgramItem>().name);
      builder_.program().description = s.as<ast::ProgramItem>().description;
      break;
    case ast::StmtKind::param:
      param(s.as<ast::Let>());
      break;
    case ast::StmtKind::let:
      let(s.as<ast::Let>());
      break;
    case ast::StmtKind::def:
      evaluator_.value(s.as<ast::Def>().name.id).kind = ValueKind::def;
      evaluator_.value(s.as<ast::Def>().name.id).def = &s.as<ast::Def>();
      evaluator_.set_locals(s.as<ast::Def>().name.id,
                            resolution_.by_symbol[s.as<ast::Def>().name.id]);
      break;
    case ast::StmtKind::require:
      require(s.as<ast::Require>());
      break;
    case ast::StmtKind::collective:
      collective(s.as<ast::Collective>());
      break;
    case ast::StmtKind::ensure:
      ensure(s.as<ast::Ensure>());
      break;
    case ast::StmtKind::select:
      select(s.as<ast::Options>());
      break;
    case ast::StmtKind::launch:
      launch(s.as<ast::Options>());
      break;
    default:
      break;
  }
}

// ---- names -----------------------------------------------------------------------------------

void Unroller::let(const ast::Let& s) {
  for (const ast::Definition& d : s.definitions) {
    Value v;
    if (d.function) {
      v.kind = ValueKind::function;
      v.function = &d;
      evaluator_.set_locals(d.name.id, resolution_.by_symbol[d.name.id]);
    } else if (!evaluator_.eval(d.value, v)) {
      v = {};
    } else if (v.kind > ValueKind::list) {
      evaluator_.expected("a value", v.kind, d.value);
      v = {};
    }
    evaluator_.value(d.name.id) = v;
  }
}

void Unroller::param(const ast::Let& s) {
  for (const ast::Definition& d : s.definitions) {
    Value v;
    params_.push_back(ast_.text(d.name));
    if (const auto format = packet_format_word(ast_, d.value)) {
      v.kind = ValueKind::format;
      v.format = *format;
    } else if (!evaluator_.eval(d.value, v)) {
      v = {};
    }
    for (size_t i = 0; i < options_.defines.size(); ++i) {
      if (options_.defines[i].first != ast_.text(d.name)) continue;
      used_defines_[i] = true;
      if (v.kind != ValueKind::unbound && !override_param(d, options_.defines[i].second, v)) v = {};
    }
    evaluator_.value(d.name.id) = v;
  }
}

/// Replaces a default by what -D says, of the default's type.
bool Unroller::override_param(const ast::Definition& d, const std::string& text, Value& v) {
  const auto refuse = [&] {
    evaluator_.fail(
        "define", ast_.place(d.name),
        fmt::format("'{}' is {}; -D says '{}'", ast_.text(d.name), kind_text(v.kind), text));
    return false;
  };
  if (v.kind == ValueKind::boolean) {
    if (text != "true" && text != "false") return refuse();
    v = Value::of_bool(text == "true");
    return true;
  }
  if (v.kind == ValueKind::format) {
    const auto format = find_packet_format(text);
    if (!format) return refuse();
    v.format = *format;
    return true;
  }
  if (v.kind == ValueKind::integer) return read_number(text, v.integer) || refuse();
  std::vector<int64_t> elements;
  if (!read_list(text, elements)) return refuse();
  int64_t* data = evaluator_.lists().allocate(std::max<size_t>(elements.size(), 1));
  if (data == nullptr) return refuse();
  std::ranges::copy(elements, data);
  v.list = evaluator_.lists().make(List::stored({data, elements.size()}));
  return v.list != nullptr || refuse();
}

void Unroller::unknown_defines() {
  for (size_t i = 0; i < used_defines_.size(); ++i) {
    if (used_defines_[i]) continue;
    const auto& [name, value] = options_.defines[i];
    usable_ = false;
    diagnostics_.error("define", {},
                       fmt::format("no parameter '{}' for -D {}={}", name, name, value));
  }
}

void Unroller::require(const ast::Require& s) {
  bool good = false;
  if (!evaluator_.boolean(s.condition, good)) {
    usable_ = false;
    return;
  }
  if (good) return;
  usable_ = false;
  const std::string variables = evaluator_.variables_text(s.condition);
  diagnostics_.error("require", ast_.span(s.condition.place),
                     fmt::format("condition failed: \"{}\"{}", s.message,
                                 variables.empty() ? "" : fmt::format(" ({})", variables)));
}

}  // namespace mscclc
