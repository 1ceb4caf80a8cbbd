#include "ir/verify/row_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "ir/program/applied.h"
#include "ir/rows/check_row.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

/// Functions and externals of a program: hostile input costs little.
constexpr size_t kMaxFunctions = 64, kMaxExternals = 64;

bool alike(const rows::Stored& a, const rows::External& b) {
  return a.kind == b.kind && a.type == b.type && a.group == b.group;
}

bool good_external(const rows::External& e) {
  const bool groups = e.kind == rows::Kind::groups;
  const bool kind = (!e.is_read() || rows::can_be_input(e.kind)) &&
                    (!e.is_written() || rows::can_be_output(e.kind));
  const bool group =
      groups ? e.group >= 2 && e.group <= rows::kMaxGroup && (e.group & (e.group - 1)) == 0
             : e.group == 0;
  return kind && group && (e.has_rows() || e.holding != rows::Holding::sharded);
}

std::optional<RowFault> function_fault(const Program& program) {
  std::set<std::string_view> names;
  for (const rows::Function& function : program.functions) {
    if (const auto fault = rows::fault_of(function)) {
      return RowFault{"row-function", fmt::format("a row function cannot be: {}", *fault)};
    }
    if (!names.insert(function.name).second) {
      return RowFault{"row-function",
                      fmt::format("two row functions have the name '{}'", function.name)};
    }
  }
  for (const rows::External& e : program.externals) {
    if (!rows::is_row_name(e.name) || e.name == "input" || e.name == "output" ||
        !names.insert(e.name).second) {
      return RowFault{"external", "an external has no name, or one that is taken"};
    }
    if (!good_external(e)) {
      return RowFault{"external", fmt::format("the external '{}' cannot be {} {} {} {}", e.name,
                                              rows::name_of(e.kind), rows::name_of(e.type),
                                              rows::name_of(e.use), rows::name_of(e.holding))};
    }
  }
  return {};
}

/// Values of columns that a function has of one row, all of which evaluate() keeps: 256 MiB.
constexpr uint64_t kMaxRowValues = uint64_t{1} << 26;

std::optional<RowFault> size_fault(const Program& program) {
  for (const rows::Function& function : program.functions) {
    const auto wide = static_cast<uint64_t>(
        std::ranges::count(function.nodes, rows::Spread::columns, &rows::Node::spread));
    if (wide * program.contract.columns <= kMaxRowValues) continue;
    return RowFault{
        "row-contract",
        fmt::format("'{}' computes {} values of each of {} columns, more than {} in all; let it "
                    "compute fewer, or have rows of at most {} columns",
                    function.name, wide, program.contract.columns, kMaxRowValues,
                    kMaxRowValues / wide)};
  }
  return {};
}

/// Why rows of a type of their own can be of no call: they begin at multiples of 16 bytes, too.
std::optional<std::string> typed_width_fault(const Contract& c, const rows::Form& form) {
  const uint32_t bytes = rows::fixed_bytes(form.type);
  if (form.kind != rows::Kind::row || c.any_columns ||
      uint64_t{c.columns} * bytes % kLeastAlign == 0)
    return {};
  return fmt::format("rows of {} {} are no multiple of {} bytes; {}", c.columns,
                     rows::name_of(form.type), kLeastAlign, served_columns(c.columns, bytes));
}

/// Of an output whose rows are of another type than the input's.
std::optional<RowFault> output_fault(const Program& program, const ThenBinding& then) {
  const Contract& c = program.contract;
  const rows::Stored& result = program.functions[then.function].outputs[then.output];
  if (c.output_type != result.type) {
    return RowFault{"row-contract", "the output has not the type of its result"};
  }
  if (const auto fault = typed_width_fault(c, {.type = result.type})) {
    return RowFault{"row-contract", "the output cannot hold its result: " + *fault};
  }
  if (c.in_place != InPlace::yes || c.can_alias()) return {};
  return RowFault{"row-contract",
                  fmt::format("the output is rows of {}, which do not lie where rows of T lie; "
                              "leave 'inplace: true' out",
                              rows::name_of(result.type))};
}

std::optional<RowFault> contract_fault(const Program& program) {
  const Contract& c = program.contract;
  const bool sums = c.info().source == Source::everyone && !c.info().output.only_at_root;
  if (!sums || c.even_only || program.foreign) {
    return RowFault{"row-contract",
                    "row functions go with allreduce and reducescatter of any size, whose "
                    "contract says 'columns: ..., then: ...'"};
  }
  if (c.columns == 0 || c.then >= program.functions.size()) {
    return RowFault{"row-contract", "the contract needs both 'columns: ...' and 'then: ...'"};
  }
  if (c.columns > rows::kMaxColumns) {
    return RowFault{"row-contract", fmt::format("'columns' is {}; a row has 1 to {}", c.columns,
                                                rows::kMaxColumns)};
  }
  if (const auto fault = c.any_columns ? std::nullopt : width_fault(c.columns)) {
    return RowFault{"row-contract", *fault};
  }
  if (const auto fault = size_fault(program)) return fault;
  if (program.launch.align != kLeastAlign) {
    return RowFault{"row-contract", "a collective of rows is cut between rows; leave 'align' out"};
  }
  std::string fault;
  const auto then = bind_then(program, &fault);
  if (!then) return RowFault{"row-contract", fault};
  return output_fault(program, *then);
}

std::optional<RowFault> holding_fault(const Program& program) {
  const Contract& c = program.contract;
  const bool parts = c.kind == CollectiveKind::reducescatter;
  for (const rows::External& e : program.externals) {
    const bool shards = e.holding == rows::Holding::sharded;
    if (shards && (parts || c.part_chunks() % c.ranks != 0)) {
      return RowFault{
          "external",
          fmt::format("the external '{}' is sharded, which goes with an allreduce whose "
                      "'chunks' are a multiple of its ranks",
                      e.name)};
    }
    if (parts && e.has_rows() && e.holding == rows::Holding::replicated) {
      return RowFault{"external", fmt::format("the external '{}' has the rows of each rank's own "
                                              "part; leave 'replicated' out",
                                              e.name)};
    }
  }
  return {};
}

/// Of one op: its function's parameters and results, and what stands for them.
class AppliedCheck {
 public:
  AppliedCheck(const Program& program, uint32_t rank, const RowOp& op)
      : program_(program),
        rank_(rank),
        op_(op),
        what_(applied(program, op.applied)),
        function_(program.functions[what_.function]) {}

  std::optional<RowFault> run() {
    if (op_.in_loop) {
      return RowFault{"op-rows",
                      "a row function inside a pipeline, whose units are not whole rows; apply "
                      "it after the pipeline"};
    }
    const bool sums = !info(op_.kind).has(kApplies);
    if (!sides(sums) || (sums && (!sums_are_of_t() || !packets())) ||
        !externals(what_.results, function_.outputs, true) ||
        !externals(what_.params, function_.params, false) || !range()) {
      return RowFault{"op-rows", fault_};
    }
    return {};
  }

 private:
  bool no(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  /// Operands stand for rows of their type, of sums T; each destination for one result, each source
  /// for an argument.
  /// Of a sum all sources together are one argument, all destinations one result.
  bool sides(bool sums) {
    std::vector<uint32_t> dsts(sums ? 1 : op_.dsts.size()), srcs(sums ? 1 : op_.srcs.size());
    const auto count = [&](std::span<const int64_t> values, const std::vector<rows::Stored>& stored,
                           std::span<const Operand> operands, std::vector<uint32_t>& uses) {
      for (size_t i = 0; i < values.size(); ++i) {
        const RowValue value = Applied::value(values[i]);
        if (value.external) continue;
        if (!stands_for(operands[value.index], stored[i])) return false;
        ++uses[value.index];
      }
      return true;
    };
    if (!count(what_.results, function_.outputs, op_.dsts, dsts) ||
        !count(what_.params, function_.params, op_.srcs, srcs)) {
      return false;
    }
    const bool once = std::ranges::all_of(dsts, [](uint32_t n) { return n == 1; });
    const bool used =
        std::ranges::all_of(srcs, [sums](uint32_t n) { return sums ? n == 1 : n > 0; });
    return (once && used) || no("an operand stands for no result, or for several");
  }

  bool stands_for(const Operand& o, const rows::Stored& stored) {
    const Buffer& b = program_.buffer_of(rank_, o);
    const rows::Form form = rows::form_of(stored);
    if (form == program_.form_of(b)) return true;
    const std::string_view name = form_name(program_, form);
    const bool scratch = b.kind == BufferKind::scratch && !name.empty() &&
                         (form.kind == rows::Kind::row || form.type != rows::Type::T);
    return no(fmt::format(
        "'{}' of '{}' is '{} {}', and '{}' holds {}; {}", stored.name, function_.name,
        rows::name_of(stored.kind), rows::name_of(stored.type), program_.name_of(b.name),
        rows::text_of(program_.form_of(b)),
        scratch ? fmt::format("declare it 'type: {}'", name) : "only an external can be it"));
  }

  /// Machines add up in T, and put what becomes of a sum where sums would lie.
  bool sums_are_of_t() {
    for (const std::span<const Operand> side : {op_.dsts, op_.srcs}) {
      for (const Operand& o : side) {
        const Buffer& b = program_.buffer_of(rank_, o);
        if (program_.form_of(b) == rows::Form{}) continue;
        return no(fmt::format(
            "'{}' holds {}, and sums are handed over in T; store the sum, and 'apply {}'",
            program_.name_of(b.name), rows::text_of(program_.form_of(b)), function_.name));
      }
    }
    return true;
  }

  /// A unit of packets belongs to one row, and carries all that a function may give.
  bool packets() {
    const auto fits = [&](const Operand& o, bool written) {
      const PacketFormatInfo& format = info(program_.buffer_of(rank_, o).packets);
      if (written && is_sentinel(format.format)) {
        return no("a result may be -0.0, which sentinel packets do not carry; use LL16 or LL8");
      }
      constexpr uint32_t kLeastBytes = 2;  // of an element that rows are made of
      const uint32_t row = program_.contract.columns * kLeastBytes;
      return format.data <= kLeastAlign || row % format.data == 0 ||
             no(fmt::format("rows of {} columns are no whole units of '{}' packets, which carry "
                            "{} bytes; use LL16",
                            program_.contract.columns, format.name, format.data));
    };
    return std::ranges::all_of(op_.dsts, [&](const Operand& o) { return fits(o, true); }) &&
           std::ranges::all_of(op_.srcs, [&](const Operand& o) { return fits(o, false); });
  }

  bool externals(std::span<const int64_t> values, const std::vector<rows::Stored>& stored,
                 bool written) {
    for (size_t i = 0; i < values.size(); ++i) {
      const RowValue value = Applied::value(values[i]);
      if (!value.external) continue;
      const rows::External& e = program_.externals[value.index];
      if (!alike(stored[i], e)) {
        return no(fmt::format("'{}' of '{}' and the external '{}' are not of one kind and type",
                              stored[i].name, function_.name, e.name));
      }
      if (written ? !e.is_written() : !e.is_read()) {
        return no(fmt::format("the external '{}' is '{}'; it is not to be {}", e.name,
                              rows::name_of(e.use), written ? "written" : "read"));
      }
      if (std::ranges::count(values, values[i]) > 1 && written) {
        return no(fmt::format("two results go to the external '{}'", e.name));
      }
    }
    return true;
  }

  bool range() {
    const Contract& c = program_.contract;
    const uint64_t end = uint64_t{what_.first} + op_.dsts[0].count;
    if (end > c.part_chunks()) {
      return no(fmt::format("rows of chunks {}..{} of a part that has {}", what_.first, end,
                            c.part_chunks()));
    }
    for (const std::span<const int64_t> side : {what_.results, what_.params}) {
      for (const int64_t v : side) {
        const RowValue value = Applied::value(v);
        if (!value.external) continue;
        const rows::External& e = program_.externals[value.index];
        const bool own = owner_of_shard_or(c, what_.first) == rank_ &&
                         owner_of_shard_or(c, static_cast<uint32_t>(end - 1)) == rank_;
        if (e.holding == rows::Holding::sharded && !own) {
          return no(
              fmt::format("rank {} does not have chunks {}..{} of the external '{}', which is "
                          "sharded",
                          rank_, what_.first, end, e.name));
        }
      }
    }
    return sizes();
  }

  static uint32_t owner_of_shard_or(const Contract& c, uint32_t chunk) {
    return c.part_chunks() % c.ranks == 0 ? owner_of_shard(c, chunk) : kNone;
  }

  /// Externals have the rows of the output's chunks; the caller's chunks must be as long.
  bool sizes() {
    if (!has_rows(program_, what_)) return true;
    for (const std::span<const Operand> side : {op_.dsts, op_.srcs}) {
      for (const Operand& o : side) {
        if (o.buffer < kFirstScratch && !as_long(o)) {
          return no(
              "the rows of the externals and a chunk of input or output are not equally many "
              "for every message");
        }
      }
    }
    return true;
  }

  bool as_long(const Operand& o) const {
    const Contract& c = program_.contract;
    const uint32_t owner = program_.owner_of(rank_, o);
    const Side side = o.buffer == kInput ? Side::input : Side::output;
    for (uint32_t k = 0; k < o.count; ++k) {
      if (o.first + k >= c.chunk_count(side, owner) ||
          c.size_class(side, owner, o.first + k) !=
              c.size_class(Side::output, rank_, what_.first + k)) {
        return false;
      }
    }
    return true;
  }

  const Program& program_;
  const uint32_t rank_;
  const RowOp& op_;
  const Applied what_;
  const rows::Function& function_;
  std::string fault_;
};

}  // namespace

std::optional<RowFault> rows_fault(const Program& program) {
  const Contract& c = program.contract;
  const bool any = !program.functions.empty() || !program.externals.empty();
  if (!any && c.columns == 0 && !c.any_columns && c.then == Contract::kNoFunction) return {};
  if (program.functions.size() > kMaxFunctions || program.externals.size() > kMaxExternals) {
    return RowFault{"row-function",
                    fmt::format("more than {} row functions or externals", kMaxFunctions)};
  }
  if (auto fault = function_fault(program)) return fault;
  if (auto fault = contract_fault(program)) return fault;
  return holding_fault(program);
}

std::string served_columns(uint32_t columns, uint32_t value_bytes) {
  const uint32_t step = kLeastAlign / value_bytes, less = columns / step * step;
  if (less == 0) return fmt::format("{} columns are served", step);
  return fmt::format("{} columns are served, and {}", less, less + step);
}

std::optional<std::string> width_fault(uint32_t columns) {
  constexpr uint32_t kMostBytesOfT = 4;  // f32's
  if (uint64_t{columns} * kMostBytesOfT % kLeastAlign == 0) return {};
  return fmt::format(
      "'columns' is {}: then a row is no multiple of {} bytes in any type; of f32 {}", columns,
      kLeastAlign, served_columns(columns, kMostBytesOfT));
}

namespace {

/// The same of all rows of a program whose columns are fixed.
std::optional<std::string> widths_fault(const Program& program) {
  const Contract& c = program.contract;
  auto fault = width_fault(c.columns);
  if (!fault) fault = typed_width_fault(c, {.type = c.output_type});
  for (const Rank& rank : program.ranks) {
    for (const Buffer& b : rank.buffers) {
      if (!fault) fault = typed_width_fault(c, b.form);
    }
  }
  return fault;
}

}  // namespace

std::optional<RowFault> fix_columns(Program& program, uint64_t columns) {
  Contract& c = program.contract;
  const Contract before = c;
  const auto fault = [](std::string text) { return RowFault{"row-call", std::move(text)}; };
  if (!c.any_columns) {
    return fault(c.columns == 0 ? "the program is not one of rows"
                                : fmt::format("the program's rows have {} columns", c.columns));
  }
  if (columns == 0 || columns > rows::kMaxColumns) {
    return fault(fmt::format("rows of {} columns; a row has 1 to {}", columns, rows::kMaxColumns));
  }
  if (columns % c.columns != 0) {
    const uint64_t less = columns / c.columns * c.columns;
    return fault(fmt::format(
        "the program takes rows of any multiple of {} columns, and {} is none: {}{} is the next",
        c.columns, columns, less == 0 ? "" : fmt::format("{} is the last, and ", less),
        less + c.columns));
  }
  c.columns = static_cast<uint32_t>(columns);
  c.any_columns = false;
  auto wrong = size_fault(program);
  if (const auto width = wrong ? std::nullopt : widths_fault(program)) wrong = fault(*width);
  if (wrong) c = before;
  return wrong;
}

std::optional<RowFault> columns_fault(const Program& program) {
  const Contract& c = program.contract;
  if (!c.any_columns) return {};
  return RowFault{
      "row-call",
      fmt::format("the plan takes rows of any multiple of {0} columns; say how many before it is "
                  "loaded: 'mscclc run --columns {0}', mscclc_plan_columns() in C, "
                  "Plan.with_columns() in Python, or 'columns: {0}' in its program",
                  c.columns)};
}

std::optional<RowFault> applied_fault(const Program& program, uint32_t rank, const RowOp& op) {
  return AppliedCheck(program, rank, op).run();
}

std::optional<RowFault> applied_fault(const Program& program, uint32_t rank, const Op& op) {
  precondition([&] { return applied_fits(program, op); });
  return applied_fault(
      program, rank,
      RowOp{op.kind, op.loop != kNone, program.dsts(op), program.srcs(op), op.applied});
}

std::optional<RowFault> types_fault(const Program& program, uint32_t rank, OpKind kind,
                                    bool in_loop, std::span<const Operand> dsts,
                                    std::span<const Operand> srcs) {
  constexpr rows::Form T;
  if (program.contract.columns == 0) return {};
  if (info(kind).srcs.slot[0].pairwise && dsts.size() > 1) {
    std::optional<RowFault> fault;
    for (size_t i = 0; i < dsts.size() && !fault; ++i) {
      fault = types_fault(program, rank, kind, in_loop, dsts.subspan(i, 1), srcs.subspan(i, 1));
    }
    return fault;
  }
  const Buffer* first = nullptr;  // a buffer of another form, or the first
  for (const std::span<const Operand> side : {dsts, srcs}) {
    for (const Operand& o : side) {
      const Buffer& b = program.buffer_of(rank, o);
      if (first == nullptr || program.form_of(*first) == T) first = &b;
    }
  }
  if (first == nullptr || program.form_of(*first) == T) return {};
  const std::string_view name = program.name_of(first->name), of = info(kind).name;
  const rows::Form form = program.form_of(*first);
  if (info(kind).has(kReduces)) {
    return RowFault{"op-rows", fmt::format("'{}' adds up rows of T, and '{}' holds {}; "
                                           "'apply' makes one of the other",
                                           of, name, rows::text_of(form))};
  }
  for (const std::span<const Operand> side : {dsts, srcs}) {
    for (const Operand& o : side) {
      const Buffer& b = program.buffer_of(rank, o);
      if (program.form_of(b) == form) continue;
      return RowFault{"op-rows",
                      fmt::format("'{}' holds {}, and '{}' {}: '{}' moves them as they are; "
                                  "'apply' makes one of the other",
                                  name, rows::text_of(form), program.name_of(b.name),
                                  rows::text_of(program.form_of(b)), of)};
    }
  }
  if (!in_loop) return {};
  return RowFault{"op-rows", fmt::format("{} inside a pipeline, whose units are bytes of T; move "
                                         "'{}' after the pipeline",
                                         rows::text_of(form), name)};
}

std::optional<RowFault> buffer_fault(const Program& program, const Buffer& buffer) {
  if (buffer.form == rows::Form{}) return {};
  const auto fault = [&](std::string_view why) {
    return RowFault{"buffer-type",
                    fmt::format("'{}' cannot hold {}: {}", program.name_of(buffer.name),
                                rows::text_of(buffer.form), why)};
  };
  if (buffer.kind != BufferKind::scratch) return fault("the contract says what the caller's do");
  if (program.contract.columns == 0) {
    return fault("the collective is not one of rows; its contract says no 'columns: ...'");
  }
  if (!rows::is_per_row(buffer.form.kind) || form_name(program, buffer.form).empty()) {
    return fault("no external has such values of each row");
  }
  if (buffer.form.kind != rows::Kind::row && buffer.form.type == rows::Type::T) {
    return fault("only rows may be of T; give the external a type of its own");
  }
  if (const auto why = typed_width_fault(program.contract, buffer.form)) return fault(*why);
  if (buffer.units != 0) return fault("units of a pipeline are bytes of T; leave 'units' out");
  if (is_sentinel(buffer.packets)) {
    return fault("sentinel packets carry numbers of the call's type; use LL16 or LL8");
  }
  return {};
}

std::optional<RowFault> external_writes_fault(const Program& program, uint32_t rank) {
  struct User {
    uint32_t first, count;  ///< chunks of the op
    uint16_t parts;
    std::set<uint32_t> seen;  ///< which parts
  };
  std::map<std::pair<uint32_t, uint32_t>, User> users;  // by external and chunk
  for (const Op& op : program.ranks[rank].ops) {
    if (!applies(op)) continue;
    const Applied what = applied(program, op);
    std::set<uint32_t> touched;  // externals that are written, here or elsewhere
    for (const std::span<const int64_t> side : {what.results, what.params}) {
      for (const int64_t v : side) {
        const RowValue value = Applied::value(v);
        const bool written = value.external && program.externals[value.index].is_written();
        if (written) touched.insert(value.index);
      }
    }
    for (const uint32_t e : touched) {
      for (uint32_t k = 0; k < program.dsts(op)[0].count; ++k) {
        const uint32_t count = program.dsts(op)[0].count;
        const auto [at, fresh] =
            users.try_emplace({e, what.first + k}, User{what.first, count, op.parts, {op.part}});
        if (fresh) continue;
        // Parts of the same chunks have different rows.
        User& other = at->second;
        const bool parts = op.parts > 1 && op.parts == other.parts && what.first == other.first &&
                           count == other.count && other.seen.insert(op.part).second;
        if (parts) continue;
        return RowFault{"op-rows",
                        fmt::format("a second op has chunk {} of the external '{}', which is "
                                    "written; one op must do all with it",
                                    what.first + k, program.externals[e].name),
                        &op};
      }
    }
  }
  return {};
}

}  // namespace mscclc
