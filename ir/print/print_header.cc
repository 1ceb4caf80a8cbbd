// The lines above the ranks: names, contract, select, launch.
#include <algorithm>

#include "ir/print/print_parts.h"
#include "ir/rows/print_row.h"

namespace mscclc {
namespace {

/// The word of a header line, its value at column 12.
TextWriter& line(TextWriter& out, std::string_view word) {
  out << word;
  out.spaces(11 - std::min<size_t>(word.size(), 10));
  return out;
}

void print_description(TextWriter& out, std::string_view text) {
  if (text.empty()) return;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out << '#';
    if (end > begin) out << ' ';
    out << text.substr(begin, end - begin) << '\n';
    begin = end + 1;
  }
}

/// S of `chunks: S`: a number or a list.
void print_dims(TextWriter& out, const std::vector<uint32_t>& dims) {
  if (dims.size() <= 1) {
    out.number(dims.empty() ? 1 : dims[0]);
    return;
  }
  const std::vector<int64_t> values(dims.begin(), dims.end());
  print_list(out, values);
}

void print_term(TextWriter& out, std::string_view buffer, const CallerChunk& place) {
  out << buffer << '[';
  out.number(place.chunk) << "] at ";
  out.number(place.rank);
}

void print_reduction(TextWriter& out, const std::vector<CallerChunk>& inputs) {
  out << "reduce(";
  const bool one_chunk = !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [&](auto& p) {
    return p.chunk == inputs[0].chunk;
  });
  if (one_chunk) {
    std::vector<int64_t> ranks;
    ranks.reserve(inputs.size());
    for (const CallerChunk& p : inputs) ranks.push_back(p.rank);
    out << "input[";
    out.number(inputs[0].chunk) << "] at p for p in ";
    print_set(out, ranks);
  } else {
    Separator terms(out);
    for (const CallerChunk& p : inputs) print_term(terms.next(), "input", p);
  }
  out << ')';
}

void print_promises(TextWriter& out, const Contract& contract) {
  for (const Promise& promise : contract.promises) {
    print_term(line(out, "ensure"), "output", promise.output);
    out << " = ";
    if (promise.reduced || promise.inputs.size() != 1) {
      print_reduction(out, promise.inputs);
    } else {
      print_term(out, "input", promise.inputs[0]);
    }
    out << '\n';
  }
}

void print_contract(TextWriter& out, const Program& program) {
  const Contract& c = program.contract;
  if (c.kind == CollectiveKind::none) return;
  line(out, "collective") << name(c.kind) << '(';
  Separator options(out);
  options.next() << "ranks: ";
  out.number(c.ranks);
  if (c.kind == CollectiveKind::custom) {
    print_dims(options.next() << "input: ", c.input);
    print_dims(options.next() << "output: ", c.output);
  } else if (c.chunks.size() > 1 || (c.chunks.size() == 1 && c.chunks[0] != 1)) {
    print_dims(options.next() << "chunks: ", c.chunks);
  }
  if (has_root(c.kind)) (options.next() << "root: ").number(c.root);
  if (c.kind == CollectiveKind::sendrecv) (options.next() << "shift: ").number(c.shift);
  if (c.kind == CollectiveKind::alltoallv) print_list(options.next() << "counts: ", c.counts);
  if (c.in_place != InPlace::either) {
    options.next() << "inplace: " << (c.in_place == InPlace::yes ? "true" : "false");
  }
  if (c.even_only) options.next() << "even: true";
  if (c.order != SumOrder::any) options.next() << "order: " << name(c.order);
  if (c.columns != 0) (options.next() << "columns: ").number(c.columns);
  if (c.any_columns) out << "..";
  if (c.then != Contract::kNoFunction) {
    options.next() << "then: " << program.functions[c.then].name;
  }
  out << ")\n";
  print_promises(out, c);
}

void print_external(TextWriter& out, const rows::External& external) {
  line(out, "external") << external.name << ": " << rows::name_of(external.kind);
  if (external.kind == rows::Kind::groups) (out << '(').number(external.group) << ')';
  out << ' ' << rows::name_of(external.type);
  if (external.use != rows::Use::in) out << ' ' << rows::name_of(external.use);
  if (external.holding != rows::Holding::local) out << ' ' << rows::name_of(external.holding);
  out << '\n';
}

void print_flags(TextWriter& out, const Program& program, const FlagArray& flags) {
  const FlagArray usual;
  (line(out, "external") << "flags " << flags.name << '[').number(flags.count) << "] of: ";
  out << (flags.of_output ? "output" : "input");
  if (flags.raises != usual.raises) (out << ", raises: ").number(flags.raises);
  if (flags.bits != usual.bits) (out << ", bits: ").number(flags.bits);
  if (flags.scope != usual.scope) out << ", scope: " << name(flags.scope);
  if (flags.tiles != usual.tiles) out << ", tiles: " << name(flags.tiles);
  if (flags.after != usual.after) out << ", after: " << program.flags[flags.after].name;
  out << '\n';
}

/// `1KiB..32KiB` without its end, `2..` without one, `8` alone.
void print_range(TextWriter& out, const Range& range, bool bytes) {
  const auto number = [&](uint64_t n) { bytes ? print_bytes(out, n) : void(out.number(n)); };
  // Ends that the language's 64-bit integers cannot name are as good as none.
  constexpr uint64_t kLargestEnd = ~uint64_t{0} >> 1;
  number(range.min);
  if (range.min == range.max) return;
  out << "..";
  if (range.max < kLargestEnd) number(range.max + 1);
}

bool is_all(const Range& range) { return range.min == 0 && range.max == ~uint64_t{0}; }

void print_select(TextWriter& out, const Select& select) {
  TextWriter text(256);
  Separator options(text);
  if (!is_all(select.sizes)) print_range(options.next() << "sizes: ", select.sizes, true);
  if (!is_all(select.nodes)) print_range(options.next() << "nodes: ", select.nodes, false);
  if (!is_all(select.gpus_per_node)) {
    print_range(options.next() << "gpus_per_node: ", select.gpus_per_node, false);
  }
  const auto words = [&](std::string_view option, const auto& values, auto print) {
    if (values.empty()) return;
    options.next() << option << ": [";
    Separator items(text);
    for (const auto& v : values) print(items.next(), v);
    text << ']';
  };
  words("dtypes", select.dtypes, [](TextWriter& t, Dtype d) { t << info(d).name; });
  words("ops", select.ops, [](TextWriter& t, ReduceOp op) { t << name(op); });
  words("tags", select.tags, [](TextWriter& t, const std::string& tag) { print_name(t, tag); });
  if (select.priority != 0) (options.next() << "priority: ").number(select.priority);
  if (text.size() > 0) line(out, "select") << text.take() << '\n';
}

void print_launch(TextWriter& out, const Program& program) {
  const Launch& launch = program.launch;
  const Launch usual;
  TextWriter text(256);
  Separator options(text);
  const auto number = [&](std::string_view option, uint32_t value, uint32_t usual_value) {
    if (value != usual_value) (options.next() << option << ": ").number(value);
  };
  const auto flag = [&](std::string_view option, bool value, bool usual_value) {
    if (value != usual_value) options.next() << option << (value ? ": true" : ": false");
  };
  number("threads", launch.threads, usual.threads);
  number("instances", launch.instances, usual.instances);
  if (launch.policy != usual.policy) options.next() << "policy: blocked";
  number("align", launch.align, usual.align);
  flag("fuse", launch.fuse, usual.fuse);
  flag("auto_sync", launch.auto_sync, usual.auto_sync);
  flag("reuse_scratch", launch.reuse_scratch, usual.reuse_scratch);
  flag("split", program.split, false);
  flag("foreign", program.foreign, false);
  if (text.size() > 0) line(out, "launch") << text.take() << '\n';
}

}  // namespace

void print_header(TextWriter& out, const Program& program) {
  out << "ir 1";
  if (!program.files.empty()) {
    out << " from ";
    print_string(out, program.files[0]);
  }
  out << '\n';
  print_description(out, program.description);
  print_name(line(out, "program"), program.name);
  out << '\n';
  for (const rows::Function& function : program.functions) out << rows::print(function);
  for (const rows::External& external : program.externals) print_external(out, external);
  for (const FlagArray& flags : program.flags) print_flags(out, program, flags);
  print_contract(out, program);
  print_select(out, program.select);
  print_launch(out, program);
}

}  // namespace mscclc
