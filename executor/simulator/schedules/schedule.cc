#include "executor/simulator/schedules/schedule.h"

#include <fmt/format.h>

#include "ir/print/print.h"
#include "ir/report/op_error.h"
#include "plans/format/json/content_hash.h"
#include "plans/format/json/json_out.h"

namespace mscclc {
namespace {

/// Writes members of an object, with what stands between them.
class ScheduleMembers {
 public:
  explicit ScheduleMembers(JsonOut& out) : out_(out) { out_.text("{"); }
  void add(std::string_view key, std::string_view value) {
    begin(key);
    out_.string(value);
  }
  void add(std::string_view key, uint64_t value) { add_literal(key, fmt::format("{}", value)); }
  void add_literal(std::string_view key, std::string_view value) {
    begin(key);
    out_.text(value);
  }
  /// The next member stands on a line of its own.
  void new_line() { separator_ = separator_.empty() ? "" : ",\n "; }

 private:
  void begin(std::string_view key) {
    out_.text(separator_);
    separator_ = ", ";
    out_.text(fmt::format("\"{}\": ", key));
  }
  JsonOut& out_;
  std::string_view separator_ = "";
};

void write_hold(JsonOut& out, const Hold& hold) {
  ScheduleMembers m(out);
  m.add("what", name(hold.what));
  m.add("rank", hold.rank);
  m.add("call", hold.call);
  if (hold.what != Hold::What::call) m.add("op", hold.op);
  if (hold.strand != Hold::kAllStrands) m.add("strand", hold.strand);
  m.add("note", hold.note);
  out.text("}");
}

}  // namespace

std::string program_hash(const Program& program) {
  Program bare = program;
  bare.files.clear();
  for (Rank& rank : bare.ranks) {
    for (Op& op : rank.ops) op.locations = {};
  }
  ContentHash hash;
  hash.update(print_ir(bare));
  return hash.digits();
}

std::string describe(const Program& program, const Hold& hold) {
  if (hold.what == Hold::What::call) {
    return fmt::format("rank {} enters call {} late", hold.rank, hold.call);
  }
  const Op& op = program.ranks[hold.rank].ops[hold.op];
  const std::string at = print_location(program, op);
  return fmt::format("{} ({}){}{}", print_op(program, hold.rank, op),
                     print_place(program, hold.rank, op), at.empty() ? "" : " at ", at);
}

std::string describe(std::span<const PlacedPlan> plans, const CallsByRank& order,
                     const Hold& hold) {
  if (hold.what == Hold::What::call) return describe(*plans[0].program, hold);
  const PlacedPlan& plan = plans[order[hold.rank][hold.call]];
  Hold own = hold;
  own.rank = plan.rank_at(hold.rank);
  return fmt::format("{} of '{}'", describe(*plan.program, own), plan.name);
}

namespace {

void write_run(ScheduleMembers& m, const RunSpec& spec) {
  m.add("dtype", info(spec.dtype).name);
  m.add("op", name(spec.op));
  m.add_literal("in_place", *spec.in_place ? "true" : "false");
  m.new_line();
}

void write_place(ScheduleMembers& m, const RunSpec& spec) {
  m.add("strands", spec.adversary->strands);
  m.add("seed", spec.schedule_seed);
  m.new_line();
}

/// A list with an element on each line: `write(i)` writes one.
template <class Write>
void write_lines(JsonOut& out, size_t count, Write write) {
  out.text("[");
  for (size_t i = 0; i < count; ++i) {
    out.text(i == 0 ? "\n  " : ",\n  ");
    write(i);
  }
  out.text("]");
}

void write_one(ScheduleMembers& m, const Schedule& schedule) {
  const RunSpec& spec = schedule.spec;
  m.add("schema", 1);
  m.new_line();
  m.add("plan", schedule.plan);
  m.new_line();
  m.add("bytes", spec.bytes);
  write_run(m, spec);
  m.add("calls", spec.iterations);
  write_place(m, spec);
}

void write_set(JsonOut& out, ScheduleMembers& m, const Schedule& schedule) {
  const RunSpec& spec = schedule.spec;
  m.add("schema", 2);
  m.new_line();
  m.add_literal("plans", "");
  write_lines(out, schedule.plans.size(), [&](size_t i) {
    const Schedule::Placed& placed = schedule.plans[i];
    ScheduleMembers plan(out);
    plan.add("plan", placed.plan);
    plan.add_literal("ranks", fmt::format("[{}]", fmt::join(placed.ranks, ", ")));
    plan.add("bytes", spec.plan_bytes[i]);
    out.text("}");
  });
  m.new_line();
  write_run(m, spec);
  write_place(m, spec);
  m.add_literal("calls", "");
  write_lines(out, spec.order.size(), [&](size_t rank) {
    out.text(fmt::format("[{}]", fmt::join(spec.order[rank], ", ")));
  });
  m.new_line();
}

}  // namespace

std::string write_schedule(const Schedule& schedule) {
  std::string text;
  JsonOut out([&](std::string_view block) {
    text += block;
    return true;
  });
  ScheduleMembers m(out);
  schedule.plans.empty() ? write_one(m, schedule) : write_set(out, m, schedule);
  const std::vector<Hold>& holds = schedule.spec.adversary->holds;
  m.add_literal("holds", "");
  write_lines(out, holds.size(), [&](size_t i) { write_hold(out, holds[i]); });
  out.text("}\n");
  out.flush();
  return text;
}

}  // namespace mscclc
