#include "compiler/resolve/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "ir/ops/summations.h"

namespace mscclc {
namespace {

using ast::Symbol;

constexpr std::string_view kCollective[] = {"ranks",  "chunks", "root",    "shift",
                                            "counts", "input",  "output",  "inplace",
                                            "even",   "order",  "columns", "then"};
constexpr std::string_view kSelect[] = {"sizes", "nodes", "gpus_per_node", "dtypes",
                                        "ops",   "tags",  "priority"};
constexpr std::string_view kLaunch[] = {"threads",   "instances",     "policy", "align",  "fuse",
                                        "auto_sync", "reuse_scratch", "split",  "foreign"};
constexpr std::string_view kBuffer[] = {"packets", "copies", "units", "type"};
constexpr std::string_view kChannel[] = {"credits"};
constexpr std::string_view kPipeline[] = {"unit", "chunks", "loop"};
constexpr std::string_view kFlags[] = {"of", "raises", "bits", "scope", "tiles", "after"};
constexpr std::string_view kOp[] = {"relaxed", "op", "part", "tree", "exact", "complete"};

/// What each place takes; the last ones of some lists only in IR text.
std::span<const std::string_view> allowed(OptionsOf of) {
  switch (of) {
    case OptionsOf::collective:
      return kCollective;
    case OptionsOf::select:
      return kSelect;
    case OptionsOf::launch:
      return std::span(kLaunch).first(7);
    case OptionsOf::ir_launch:
      return kLaunch;
    case OptionsOf::buffer:
      return kBuffer;
    case OptionsOf::channel:
      return kChannel;
    case OptionsOf::pipeline:
      return std::span(kPipeline).first(2);
    case OptionsOf::ir_pipeline:
      return kPipeline;
    case OptionsOf::flags:
      return kFlags;
    case OptionsOf::op:
      return std::span(kOp).first(5);
    case OptionsOf::ir_op:
      return kOp;
  }
  return {};
}

/// True by being there.
bool is_flag(std::string_view name) {
  return name == "relaxed" || name == "complete" || find_summation(name);
}

}  // namespace

bool is_option(OptionsOf of, std::string_view name) {
  return std::ranges::find(allowed(of), name) != allowed(of).end();
}

bool check_options(const ast::Ast& ast, ast::Array<const ast::Option> options, OptionsOf of,
                   std::string_view what, Diagnostics& diagnostics) {
  bool good = true;
  const auto error = [&](const char* code, ast::TextRange place, std::string text) -> Diagnostic& {
    good = false;
    return diagnostics.error(code, ast.span(place), std::move(text));
  };
  for (const ast::Option& o : options) {
    const std::string_view name = ast.text(o.name);
    if (!is_option(of, name)) {
      const auto known = allowed(of);
      const std::string near = nearest(name, {known.begin(), known.end()});
      error("unknown-option", ast.place(o.name),
            fmt::format("'{}' has no option '{}'{}", what, name,
                        near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
      continue;
    }
    const ast::Option* first = find_option(options, o.name.id);
    if (first != &o) {
      error("repeated-option", ast.place(o.name), fmt::format("a second '{}'", name))
          .notes.push_back({"the first is here", ast.span(first->name)});
    }
    if (o.value.given() == is_flag(name)) {
      error("option-value", o.place,
            is_flag(name) ? fmt::format("'{}' takes no value", name)
                          : fmt::format("'{}' needs a value: '{}: ...'", name, name));
    }
    const bool columns = of == OptionsOf::collective && o.name.id == ast::w_columns;
    if (o.open_end && of != OptionsOf::select && !columns) {
      error("option-value", o.place, fmt::format("'{}' takes no open range", name));
    }
  }
  return good;
}

bool takes_words(const ast::Option& option) {
  switch (option.name.id) {
    case ast::w_packets:
    case ast::w_policy:
    case ast::w_dtypes:
    case ast::w_ops:
    case ast::w_tags:
    case ast::w_op:
    case ast::w_order:
    case ast::w_then:
    case ast::w_of:
    case ast::w_scope:
    case ast::w_tiles:
    case ast::w_after:
    case ast::w_type:
      return true;
    case ast::w_inplace:
      return option.value.kind == ast::ExprKind::name && option.value.name.id == ast::w_either;
    default:
      return false;
  }
}

std::optional<PacketFormat> packet_format_word(const ast::Ast& ast, const ast::Expr& e) {
  if (e.kind != ast::ExprKind::name) return std::nullopt;
  return find_packet_format(ast.text(e.name.id));
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string near = nearest(word, known);
  if (!near.empty()) return fmt::format("; did you mean '{}'?", near);
  std::string all = "; there are ";
  for (size_t i = 0; i < known.size(); ++i) {
    all += fmt::format("{}{}", i == 0 ? "" : i + 1 == known.size() ? " and " : ", ", known[i]);
  }
  return all;
}

const std::vector<std::string_view>& reduce_names() {
  static const std::vector<std::string_view> names = {"sum", "min", "max", "prod", "avg"};
  return names;
}

const ast::Option* find_option(ast::Array<const ast::Option> options, ast::Symbol name) {
  for (const ast::Option& o : options) {
    if (o.name.id == name) return &o;
  }
  return nullptr;
}

}  // namespace mscclc
