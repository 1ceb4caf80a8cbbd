#include "compiler/unroll/header_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/resolve/options.h"
#include "ir/program/flag_regions.h"

namespace mscclc {

using ast::Option;

void HeaderLines::line(const Item& item) {
  const ast::Stmt& s = *item.stmt;
  scope_.set_place(s.keyword);
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
      scope_.let(s.as<ast::Let>());
      break;
    case ast::StmtKind::def:
      evaluator_.value(s.as<ast::Def>().name.id).kind = ValueKind::def;
      evaluator_.value(s.as<ast::Def>().name.id).def = &s.as<ast::Def>();
      evaluator_.names().set_locals(s.as<ast::Def>().name.id,
                                    scope_.resolution.by_symbol[s.as<ast::Def>().name.id]);
      break;
    case ast::StmtKind::row:
      row(s.as<ast::RowItem>());
      break;
    case ast::StmtKind::external:
      externals(s.as<ast::Externals>());
      break;
    case ast::StmtKind::flags:
      flags(s.as<ast::FlagsDecl>());
      break;
    case ast::StmtKind::require:
      require(s.as<ast::Require>());
      break;
    case ast::StmtKind::collective:
      contract_.collective(s.as<ast::Collective>());
      break;
    case ast::StmtKind::ensure:
      contract_.ensure(s.as<ast::Ensure>());
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

/// A row function that something uses becomes one of the program's.
void HeaderLines::row(const ast::RowItem& s) {
  if (std::ranges::find(scope_.resolution.used_rows, s.name.id) ==
          scope_.resolution.used_rows.end() &&
      !scope_.main.is_ir) {
    return;
  }
  std::vector<rows::Function>& functions = builder_.program().functions;
  Value& value = evaluator_.value(s.name.id);
  value.kind = ValueKind::row;
  value.thing = static_cast<uint32_t>(functions.size());
  functions.push_back(ast_.functions()[s.function]);
}

void HeaderLines::externals(const ast::Externals& s) {
  std::vector<rows::External>& externals = builder_.program().externals;
  for (const ast::ExternalDecl& e : s.externals) {
    Value& value = evaluator_.value(e.name.id);
    value.kind = ValueKind::external;
    value.thing = static_cast<uint32_t>(externals.size());
    externals.push_back(
        {std::string(ast_.text(e.name)), e.kind, e.type, e.group, e.use, e.holding});
  }
}

/// Options whose values are words.
bool HeaderLines::flag_words(const ast::FlagsDecl& s, FlagArray& out) {
  const auto fail = [&](const ast::Expr& e, const std::string& message) {
    evaluator_.fail("option-value", e.place, message);
    return false;
  };
  const ast::Option* of = find_option(s.options, ast::w_of);
  if (of == nullptr) {
    evaluator_.fail("missing-option", ast_.place(s.name),
                    "flags need 'of: input' or 'of: output': what they are for");
    return false;
  }
  const std::string_view side = ast_.text(of->value.place);
  if (side != "input" && side != "output") {
    return fail(of->value, fmt::format("'of' is 'input' or 'output', not '{}'", side));
  }
  out.of_output = side == "output";
  if (const ast::Option* o = find_option(s.options, ast::w_scope)) {
    const std::string_view word = ast_.text(o->value.place);
    const auto scope = find_flag_scope(word);
    if (!scope) return fail(o->value, fmt::format("'scope' is 'gpu' or 'system', not '{}'", word));
    out.scope = *scope;
  }
  if (const ast::Option* o = find_option(s.options, ast::w_tiles)) {
    const std::string_view word = ast_.text(o->value.place);
    const auto order = find_tile_order(word);
    if (!order) {
      return fail(o->value, fmt::format("'tiles' is 'any', 'rising', 'own_first' or 'own_last', "
                                        "not '{}'",
                                        word));
    }
    out.tiles = *order;
  }
  if (const ast::Option* o = find_option(s.options, ast::w_after)) {
    const bool is_name = o->value.kind == ast::ExprKind::name;
    const Value* value = is_name ? &evaluator_.value(o->value.name.id) : nullptr;
    if (value == nullptr || value->kind != ValueKind::flags) {
      return fail(o->value, "'after' names an array of flags");
    }
    out.after = value->thing;
  }
  return true;
}

void HeaderLines::flags(const ast::FlagsDecl& s) {
  FlagArray array;
  array.name = ast_.text(s.name);
  array.declared = ast_.span(s.place);
  int64_t count = 0;
  if (s.count.size() != 1) {
    evaluator_.fail("index-count", s.place, "an array of flags has one dimension");
    return;
  }
  bool good = evaluator_.integer(s.count[0], count) && flag_words(s, array);
  if (good && (count < 1 || count > kMaxFlags)) {
    evaluator_.fail("flags", s.count[0],
                    fmt::format("{} flags; an array has 1 to {}", count, kMaxFlags));
    good = false;
  }
  array.count = static_cast<uint32_t>(count);
  if (find_option(s.options, ast::w_raises) != nullptr) {
    good = values_.small(s.options, ast::w_raises, array.raises) && good;
  }
  if (find_option(s.options, ast::w_bits) != nullptr) {
    good = values_.small(s.options, ast::w_bits, array.bits) && good;
  }
  if (!good) return;
  Value& value = evaluator_.value(s.name.id);
  value.kind = ValueKind::flags;
  value.thing = static_cast<uint32_t>(builder_.program().flags.size());
  builder_.program().flags.push_back(std::move(array));
  flag_marks_.push_back(scope_.mark_of(s.place));
}

bool HeaderLines::check_flags() { return builder_.flags(flag_marks_); }

void HeaderLines::param(const ast::Let& s) {
  for (const ast::Definition& d : s.definitions) {
    Value v;
    params_.push_back(ast_.text(d.name));
    if (const auto format = packet_format_word(ast_, d.value)) {
      v.kind = ValueKind::format;
      v.format = *format;
    } else if (!evaluator_.eval(d.value, v)) {
      v = {};
    }
    for (size_t i = 0; i < scope_.defines.size(); ++i) {
      if (scope_.defines[i].symbol != d.name.id) continue;
      used_defines_[i] = true;
      if (v.kind != ValueKind::unbound && !override_param(d, scope_.defines[i], v)) v = {};
    }
    evaluator_.value(d.name.id) = v;
  }
}

/// Replaces a default by what -D says, of the default's type. A list of one may lack its brackets.
bool HeaderLines::override_param(const ast::Definition& d, const Define& define, Value& v) {
  const auto refuse = [&] {
    evaluator_.fail(
        "define", ast_.place(d.name),
        fmt::format("'{}' is {}; -D says '{}'", ast_.text(d.name), kind_text(v.kind), define.text));
    return false;
  };
  const ast::Expr& e = define.value;
  if (!e.given()) return refuse();
  if (v.kind == ValueKind::format) {
    const auto format = packet_format_word(ast_, e);
    if (!format) return refuse();
    v.format = *format;
    return true;
  }
  if (e.kind == ast::ExprKind::name && evaluator_.value(e.name.id).kind == ValueKind::unbound) {
    return refuse();
  }
  Value said;
  if (!evaluator_.eval(e, said)) return false;
  if (v.kind == ValueKind::list && said.kind == ValueKind::integer) {
    int64_t* element = evaluator_.lists().allocate(1);
    if (element == nullptr) return refuse();
    *element = said.integer;
    said.kind = ValueKind::list;
    said.list = evaluator_.lists().make(List::stored({element, 1}));
    if (said.list == nullptr) return refuse();
  }
  if (said.kind != v.kind) return refuse();
  v = said;
  return true;
}

void HeaderLines::unknown_defines() {
  for (size_t i = 0; i < used_defines_.size(); ++i) {
    if (used_defines_[i]) continue;
    const Define& d = scope_.defines[i];
    contract_.set_unusable();
    scope_.diagnostics.error("define", {},
                             fmt::format("no parameter '{0}' for -D {0}={1}", d.name, d.text));
  }
}

void HeaderLines::require(const ast::Require& s) {
  bool good = false;
  if (!evaluator_.boolean(s.condition, good)) {
    contract_.set_unusable();
    return;
  }
  if (good) return;
  contract_.set_unusable();
  const std::string variables = evaluator_.context().variables_text(s.condition);
  scope_.diagnostics.error("require", ast_.span(s.condition.place),
                           fmt::format("condition failed: \"{}\"{}", s.message,
                                       variables.empty() ? "" : fmt::format(" ({})", variables)));
}

void HeaderLines::select(const ast::Options& s) {
  Select& out = builder_.program().select;
  values_.range(s.options, ast::w_sizes, out.sizes);
  values_.range(s.options, ast::w_nodes, out.nodes);
  values_.range(s.options, ast::w_gpus_per_node, out.gpus_per_node);
  values_.number(s.options, ast::w_priority, out.priority);
  values_.words(s.options, ast::w_dtypes, [&](std::string_view word, ast::TextRange place) {
    if (const auto dtype = find_dtype(word)) {
      out.dtypes.push_back(*dtype);
      return;
    }
    std::vector<std::string_view> known;
    for (const DtypeInfo& t : dtype_table()) known.push_back(t.name);
    evaluator_.fail("unknown-dtype", place,
                    fmt::format("unknown data type '{}'{}", word, suggestion(word, known)));
  });
  values_.words(s.options, ast::w_ops, [&](std::string_view word, ast::TextRange place) {
    if (const auto op = find_reduce_op(word)) {
      out.ops.push_back(*op);
      return;
    }
    evaluator_.fail(
        "unknown-reduction", place,
        fmt::format("unknown reduction '{}'{}", word, suggestion(word, reduce_names())));
  });
  values_.words(s.options, ast::w_tags,
                [&](std::string_view word, ast::TextRange) { out.tags.emplace_back(word); });
}

void HeaderLines::launch(const ast::Options& s) {
  Launch launch;
  values_.small(s.options, ast::w_threads, launch.threads);
  values_.small(s.options, ast::w_instances, launch.instances);
  values_.small(s.options, ast::w_align, launch.align);
  values_.flag(s.options, ast::w_fuse, launch.fuse);
  values_.flag(s.options, ast::w_auto_sync, launch.auto_sync);
  values_.flag(s.options, ast::w_reuse_scratch, launch.reuse_scratch);
  values_.flag(s.options, ast::w_split, builder_.program().split);
  values_.flag(s.options, ast::w_foreign, builder_.program().foreign);
  if (const Option* o = find_option(s.options, ast::w_policy)) {
    const bool word = o->value.kind == ast::ExprKind::name;
    if (word && o->value.name.id == ast::w_blocked) {
      launch.policy = Policy::blocked;
    } else if (!word || o->value.name.id != ast::w_interleaved) {
      const std::string_view given = ast_.text(o->value.place);
      evaluator_.fail("option-value", o->value.place,
                      fmt::format("unknown policy '{}'{}", given,
                                  suggestion(given, {"interleaved", "blocked"})));
    }
  }
  builder_.launch(launch, {.threads = scope_.mark_of(find_option(s.options, ast::w_threads)),
                           .instances = scope_.mark_of(find_option(s.options, ast::w_instances)),
                           .align = scope_.mark_of(find_option(s.options, ast::w_align))});
}

bool HeaderLines::is_param(std::string_view name) const {
  return std::ranges::find(params_, name) != params_.end();
}

}  // namespace mscclc
