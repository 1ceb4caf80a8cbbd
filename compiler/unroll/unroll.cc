// The driver and the statements that hold others.
#include "compiler/unroll/unroll.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "compiler/resolve/options.h"
#include "compiler/unroll/least_work.h"
#include "compiler/unroll/unroller.h"

namespace mscclc {

Unroller::Unroller(const UnrollInput& input, Diagnostics& diagnostics)
    : input_(input),
      scope_(input, diagnostics),
      ast_(scope_.ast),
      evaluator_(scope_.evaluator),
      builder_(scope_.builder),
      contract_(scope_),
      header_(scope_, contract_),
      declarer_(scope_, header_),
      sites_(scope_),
      ops_(scope_, sites_) {}

/// The header, and what all ranks own. False after errors.
bool Unroller::begin(const std::vector<Item>& items) {
  Program& program = builder_.program();
  if (!scope_.main.is_ir) program.files.push_back(scope_.sources.file(scope_.main.id).name);
  evaluator_.value(ast::w_input).kind = evaluator_.value(ast::w_output).kind = ValueKind::buffer;
  evaluator_.value(ast::w_input).thing = scope_.name_id(ast::w_input);
  evaluator_.value(ast::w_output).thing = scope_.name_id(ast::w_output);
  for (const Item& item : items) header_.line(item);
  if (program.name.empty() && !scope_.main.is_ir) {
    program.name = std::filesystem::path(scope_.sources.file(scope_.main.id).name).stem().string();
  }
  header_.unknown_defines();
  if (!contract_.usable() || scope_.halted()) return false;
  if (!contract_.has_collective()) {
    scope_.set_place(items.empty() ? ast::TextRange{} : items.front().stmt->keyword);
    builder_.check();  // reports it
    return false;
  }
  if (!contract_.check_rows() || !header_.check_flags()) return false;
  for (const ast::Symbol s : scope_.resolution.unknown_far) builder_.poison(scope_.name_id(s));
  // Each rank may look at each other one some times.
  const uint64_t ranks = program.ranks.size();
  evaluator_.steps().earn(UnrollScope::kStepsPerOp * ranks * ranks);
  find_bodies(items);
  bodies(Sweep::declare, {0, static_cast<uint32_t>(bodies_.size())});
  builder_.seal();
  return true;
}

Unroller::Outcome Unroller::run(const std::vector<Item>& items, bool in_parts) {
  if (!begin(items)) return {};
  const auto ranks = static_cast<uint32_t>(bodies_.size());
  bodies(Sweep::ops, {0, std::min(1u, ranks)});
  const uint32_t parts = in_parts ? count_parts() : 1;
  if (parts > 1) {
    if (!unroll_parts(items, parts)) return {.in_vain = true};
  } else {
    bodies(Sweep::ops, {1, ranks});
  }
  scope_.set_place(contract_.collective_place());
  if (scope_.halted()) return {};
  if (scope_.diagnostics.has_errors()) builder_.state().reports().set_failed();
  Outcome outcome{.program = builder_.finish()};
  if (scope_.diagnostics.has_errors()) outcome.program.reset();
  return outcome;
}

// ---- rank bodies -----------------------------------------------------------------------------

void Unroller::find_bodies(const std::vector<Item>& items) {
  const size_t ranks = builder_.program().ranks.size();
  bodies_.assign(ranks, nullptr);
  for (const Item& item : items) {
    if (item.stmt->kind != ast::StmtKind::rank || scope_.halted()) continue;
    const ast::Placed& s = item.stmt->as<ast::Placed>();
    const auto give = [&](int64_t r) {
      if (r < 0 || r >= static_cast<int64_t>(ranks)) {
        Diagnostic& d =
            evaluator_.fail("no-such-rank", s.at.place, fmt::format("rank {} is not a rank", r));
        d.notes.push_back(
            {fmt::format("there are {}", ranks), ast_.span(contract_.collective_place())});
        return !scope_.halted();
      }
      const ast::Placed*& place = bodies_[static_cast<size_t>(r)];
      if (place != nullptr) {
        evaluator_.fail("two-bodies", s.at.place, fmt::format("rank {} has two bodies", r))
            .notes.push_back({"the other is here", ast_.span(place->at.place)});
        return !scope_.halted();
      }
      place = &s;
      return !scope_.halted();
    };
    if (s.at.name.given()) {
      evaluator_.each_value(s.at, false,
                            [&] { return give(evaluator_.context().bindings.back().value); });
    } else if (int64_t r = 0; evaluator_.integer(s.at.list, r)) {
      give(r);
    }
  }
}

void Unroller::bodies(Sweep sweep, RankRange ranks) {
  for (uint32_t r = ranks.begin; r < ranks.end && !scope_.halted(); ++r) {
    if (bodies_[r] != nullptr) body(r, sweep);
  }
}

void Unroller::body(uint32_t rank, Sweep sweep) {
  const ast::Placed& s = *bodies_[rank];
  const ListArena::Mark lists = evaluator_.lists().mark();
  scope_.set_place(s.keyword);
  builder_.rank(rank);
  ir_loops_.clear();
  if (s.at.name.given()) {
    evaluator_.value(s.at.name.id) = Value::of(rank);
    evaluator_.context().bindings.push_back({s.at.name.id, rank});
    evaluator_.context().bindings_changed = true;
  }
  if (sweep == Sweep::declare) {
    for (const ast::Stmt* stmt : s.body.statements) declarer_.declare(*stmt);
  } else {
    Program& p = builder_.program();
    if (rank > 0 && bodies_[rank - 1] == bodies_[rank]) {
      const size_t ops = p.ranks[rank - 1].ops.size();
      p.ranks[rank].ops.reserve(ops + ops / 2);
    }
    block(s.body);
  }
  if (s.at.name.given()) evaluator_.context().bindings.pop_back();
  forget(s.body);
  evaluator_.lists().release(lists);
}

// ---- statements ------------------------------------------------------------------------------

void Unroller::block(const ast::Block& b) {
  for (const ast::Stmt* s : b.statements) {
    if (scope_.halted()) return;
    statement(*s);
  }
  forget(b);
}

/// A name that is used before its 'let', which has been reported, must not find the value of the
/// last time: the memory of a list is no longer its own.
void Unroller::forget(const ast::Block& b) {
  if (!scope_.diagnostics.has_errors()) return;
  for (const ast::Stmt* s : b.statements) {
    if (s->kind != ast::StmtKind::let) continue;
    for (const ast::Definition& d : s->as<ast::Let>().definitions) {
      evaluator_.value(d.name.id) = {};
    }
  }
}

/// A loop or call that stands in no other: false, and an error, if it is too long with all that is
/// in it.
bool Unroller::may_end(const ast::Stmt& s, const ast::TextRange& place) {
  if (in_loop_ || !evaluator_.context().expansions.empty()) return true;
  const bool ops_stay = builder_.program().contract.kind != CollectiveKind::alltoallv;
  const LeastWork work = WorkCounter(evaluator_, ops_stay, def_work_).count(s);
  const uint64_t steps_left =
      work.may_do_ops ? evaluator_.steps().most_left() : evaluator_.steps().left();
  if (work.rounds > steps_left) return evaluator_.steps().too_many(work.rounds, place);
  Budget& budget = builder_.state().budget();
  const uint64_t left = budget.ops_left();
  if (work.ops <= left) return true;
  evaluator_.fail("too-many-ops", place,
                  fmt::format("a {} of {} ops in all, where {} of {} are left",
                              s.kind == ast::StmtKind::call ? "call" : "loop", work.ops, left,
                              budget.max_ops()));
  budget.give_up();
  return false;
}

void Unroller::loop(const ast::For& f) {
  if (!may_end(f, f.binders[0].place)) return;
  const bool outer = std::exchange(in_loop_, true);
  evaluator_.each(f.binders, true, [&] {
    block(f.body);
    return !scope_.halted();
  });
  in_loop_ = outer;
}

void Unroller::statement(const ast::Stmt& s) {
  switch (s.kind) {
    case ast::StmtKind::op:
      ops_.op(s.as<ast::OpStmt>());
      break;
    case ast::StmtKind::let:
      scope_.let(s.as<ast::Let>());
      break;
    case ast::StmtKind::for_:
      loop(s.as<ast::For>());
      break;
    case ast::StmtKind::if_:
      if_(s.as<ast::If>());
      break;
    case ast::StmtKind::tb:
      tb(s.as<ast::Placed>());
      break;
    case ast::StmtKind::group:
      group(s.as<ast::Group>());
      break;
    case ast::StmtKind::pipeline:
      pipeline(s.as<ast::Pipeline>());
      break;
    case ast::StmtKind::barrier:
      ops_.barrier(s.as<ast::Barrier>());
      break;
    case ast::StmtKind::call:
      call(s.as<ast::DefCall>());
      break;
    default:
      scope_.bind_names(s);
  }
}

/// `tb`, `group` or `pipeline` where an expansion brought it into another.
void Unroller::misplaced(const ast::Stmt& s, std::string_view what) {
  evaluator_.fail("nesting", s.keyword, fmt::format("'{}' inside '{}'", what, place_word_));
}

void Unroller::tb(const ast::Placed& s) {
  if (!place_word_.empty()) return misplaced(s, "tb");
  if (s.at.name.given() && !may_end(s, s.at.place)) return;
  place_word_ = "tb";
  const auto place = [&](int64_t b) {
    scope_.set_place(s.at.place);
    if (builder_.block(b, scope_.mark_of(s.at.place))) block(s.body);
    return !scope_.halted();
  };
  if (s.at.name.given()) {
    const bool outer = std::exchange(in_loop_, true);
    evaluator_.each_value(s.at, true,
                          [&] { return place(evaluator_.context().bindings.back().value); });
    in_loop_ = outer;
  } else if (int64_t b = 0; evaluator_.integer(s.at.list, b)) {
    place(b);
  }
  builder_.no_place();
  place_word_ = {};
}

void Unroller::group(const ast::Group& s) {
  if (!place_word_.empty()) return misplaced(s, "group");
  List blocks;
  scope_.set_place(s.blocks.place);
  if (!evaluator_.list(s.blocks, blocks)) return;
  place_word_ = "group";
  if (builder_.group(blocks, scope_.mark_of(s.blocks.place))) block(s.body);
  builder_.no_place();
  place_word_ = {};
}

void Unroller::pipeline(const ast::Pipeline& s) {
  scope_.set_place(s.keyword);
  if (in_pipeline_) {
    evaluator_.fail("nesting", s.keyword, "a pipeline inside a pipeline");
    return;
  }
  int64_t ir_loop = -1;
  if (!enter_pipeline(s, ir_loop)) return;
  in_pipeline_ = true;
  if (ir_loop >= 0) ir_loops_.emplace_back(ir_loop, builder_.present_pipeline());
  block(s.body);
  builder_.end_pipeline();
  in_pipeline_ = false;
}

bool Unroller::enter_pipeline(const ast::Pipeline& s, int64_t& ir_loop) {
  const ast::Option* unit_option = find_option(s.options, ast::w_unit);
  if (unit_option == nullptr) {
    evaluator_.fail("missing-option", s.keyword, "'pipeline' needs 'unit: ...'");
    return false;
  }
  int64_t unit = 0, chunks = 1;
  if (!evaluator_.integer(unit_option->value, unit)) return false;
  const ast::Option* chunks_option = find_option(s.options, ast::w_chunks);
  if (chunks_option != nullptr && !evaluator_.integer(chunks_option->value, chunks)) return false;
  if (const ast::Option* loop = find_option(s.options, ast::w_loop)) {
    if (!evaluator_.integer(loop->value, ir_loop)) return false;
    for (const auto& [k, id] : ir_loops_) {
      if (k == ir_loop) return builder_.resume_pipeline(id, unit, chunks, scope_.mark_of(loop));
    }
  }
  return builder_.pipeline(unit, chunks, scope_.mark_of(unit_option),
                           scope_.mark_of(chunks_option));
}

void Unroller::if_(const ast::If& s) {
  for (const ast::If::Arm& arm : s.arms) {
    bool taken = true;
    if (arm.condition.given() && !evaluator_.boolean(arm.condition, taken)) return;
    if (!taken) continue;
    block(arm.body);
    return;
  }
}

// ---- expansions ------------------------------------------------------------------------------

bool Unroller::bind_arguments(const ast::DefCall& s, const ast::Def& def, std::vector<Value>& out) {
  if (s.arguments.size() != def.parameters.size()) {
    Diagnostic& d = evaluator_.fail(
        "argument-count", s.place,
        fmt::format("'{}' takes {} argument{}; {} given", ast_.text(s.def), def.parameters.size(),
                    def.parameters.size() == 1 ? "" : "s",
                    s.arguments.size() == 1 ? "1 is" : fmt::format("{} are", s.arguments.size())));
    d.notes.push_back(
        {fmt::format("'{}' is declared here", ast_.text(def.name)), ast_.span(def.name)});
    return false;
  }
  for (const ast::Expr& e : s.arguments) {
    Value v;
    if (!evaluator_.eval(e, v)) return false;
    out.push_back(v);
  }
  return true;
}

void Unroller::call(const ast::DefCall& s) {
  const Value callee = evaluator_.value(s.def.id);
  if (callee.kind != ValueKind::def || !evaluator_.steps().take(s.place)) return;
  if (!may_end(s, s.place)) return;
  const ast::Def& def = *callee.def;
  std::vector<Value> arguments;
  scope_.set_place(s.place);
  if (!bind_arguments(s, def, arguments)) return;
  if (evaluator_.context().expansions.size() >= kMaxExpansion) {
    evaluator_.fail("too-deep", s.place, fmt::format("expansion deeper than {}", kMaxExpansion));
    return;
  }
  const Locals& locals = evaluator_.names().locals(s.def.id);
  const ListArena::Mark lists = evaluator_.lists().mark();
  const size_t saved = evaluator_.names().save(locals);
  for (size_t i = 0; i < arguments.size(); ++i) {
    evaluator_.value(def.parameters[i].id) = arguments[i];
  }
  const std::optional<uint32_t> outer = sites_.enter(s);
  if (!outer) return;
  evaluator_.context().expansions.push_back({s.place, s.def.id});
  block(def.body);
  evaluator_.context().expansions.pop_back();
  sites_.leave(*outer);
  evaluator_.names().restore(locals, saved);
  evaluator_.lists().release(lists);
}

// ---- entry -----------------------------------------------------------------------------------

std::optional<Program> unroll(const Sources& sources, const ast::Ast& ast, const ast::File& main,
                              const std::vector<Item>& items, const std::vector<Define>& defines,
                              const FrontEndOptions& options, Diagnostics& diagnostics) {
  Resolution resolution;
  resolve(ast, items, defines, main.is_ir, resolution, diagnostics);
  if (!resolution.usable) return std::nullopt;
  const auto run = [&](bool in_parts) {
    return Unroller({sources, ast, main, defines, options, resolution}, diagnostics)
        .run(items, in_parts);
  };
  Unroller::Outcome outcome = run(true);
  if (outcome.in_vain) outcome = run(false);
  if (outcome.program && !main.is_ir) warn_unused(ast, resolution, diagnostics);
  return std::move(outcome.program);
}

}  // namespace mscclc
