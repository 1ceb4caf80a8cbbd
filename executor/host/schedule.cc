#include "executor/host/schedule.h"

#include <fmt/format.h>

#include "ir/op_error.h"
#include "ir/print.h"
#include "plans/json/content_hash.h"
#include "plans/json/json_out.h"

namespace mscclc {
namespace {

/// Writes members of an object, with what stands between them.
class Members {
 public:
  explicit Members(JsonOut& out) : out_(out) { out_.text("{"); }
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
  Members m(out);
  m.add("what", name(hold.what));
  m.add("rank", hold.rank);
  m.add("call", hold.call);
  if (hold.what != Hold::What::call) m.add("op", hold.op);
  if (hold.lane != Hold::kAllLanes) m.add("lane", hold.lane);
  m.add("note", hold.note);
  out.text("}");
}

}  // namespace

std::string plan_hash(const Program& program) {
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

std::string write_schedule(const Schedule& schedule) {
  std::string text;
  JsonOut out([&](std::string_view block) {
    text += block;
    return true;
  });
  const RunSpec& spec = schedule.spec;
  Members m(out);
  m.add("schema", 1);
  m.new_line();
  m.add("plan", schedule.plan);
  m.new_line();
  m.add("bytes", spec.bytes);
  m.add("dtype", info(spec.dtype).name);
  m.add("op", name(spec.op));
  m.add_literal("in_place", *spec.in_place ? "true" : "false");
  m.new_line();
  m.add("calls", spec.iterations);
  m.add("lanes", spec.adversary->lanes);
  m.add("seed", spec.schedule_seed);
  m.new_line();
  m.add_literal("holds", "[");
  std::string_view separator = "\n  ";
  for (const Hold& hold : spec.adversary->holds) {
    out.text(separator);
    write_hold(out, hold);
    separator = ",\n  ";
  }
  out.text("]}\n");
  out.flush();
  return text;
}

}  // namespace mscclc
