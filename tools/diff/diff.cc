#include "tools/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <sstream>

#include "ir/diagnostics/printable.h"
#include "ir/print/print.h"
#include "ir/print/print_parts.h"
#include "tools/diff/block_diff.h"
#include "tools/diff/identity.h"

namespace mscclc::diff {
namespace {

constexpr size_t kContext = 1;    // ops shown around a change
constexpr size_t kMaxLines = 60;  // of one block

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// What stands above the ranks in IR text, without the file's name and the description.
std::vector<std::string> head_lines(const Program& program) {
  TextWriter out;
  print_header(out, program);
  std::vector<std::string> lines;
  for (const std::string& line : lines_of(out.take())) {
    if (!line.starts_with("ir ") && !line.starts_with('#')) lines.push_back(line);
  }
  return lines;
}

std::vector<uint64_t> hashed(const std::vector<std::string>& lines) {
  std::vector<uint64_t> out;
  for (const std::string& line : lines) out.push_back(std::hash<std::string>{}(line));
  return out;
}

std::string head_differences(const Program& a, const Program& b) {
  const std::vector<std::string> from = head_lines(a), to = head_lines(b);
  std::string text;
  for (const Edit& edit : edits(hashed(from), hashed(to))) {
    if (edit.kind == Edit::removed) text += "- " + printable_line(from[edit.a]) + "\n";
    if (edit.kind == Edit::added) text += "+ " + printable_line(to[edit.b]) + "\n";
  }
  return text;
}

std::string fact_differences(const std::vector<Fact>& a, const std::vector<Fact>& b) {
  std::string text;
  const auto value_of = [](const std::vector<Fact>& facts, const std::string& name) {
    const auto at = std::ranges::find(facts, name, &Fact::name);
    return at == facts.end() ? std::string("none") : at->value;
  };
  std::vector<std::string> names;
  for (const auto* facts : {&a, &b}) {
    for (const Fact& fact : *facts) {
      if (std::ranges::count(names, fact.name) == 0) names.push_back(fact.name);
    }
  }
  for (const std::string& name : names) {
    const std::string from = value_of(a, name), to = value_of(b, name);
    if (from != to) text += fmt::format("{}:\n  - {}\n  + {}\n", name, from, to);
  }
  return text;
}

std::string place_text(const Program& program, int64_t place) {
  if (place < int64_t{1} << 33) return fmt::format("tb {}", place);
  if (place >= int64_t{1} << 40) return "no thread block yet";
  TextWriter out;
  const auto group = program.groups[static_cast<size_t>(place - (int64_t{1} << 33))];
  print_set(out << "group ", program.values(group));
  return out.take();
}

/// How one rank changed: the text, and what makes it the same as that of other ranks.
struct RankChange {
  std::string text;
  uint64_t same = 0;
};

class RankDiff {
 public:
  RankDiff(const Program& a, const Program& b, uint32_t rank, const RankIdentity& ia,
           const RankIdentity& ib)
      : a_(a), b_(b), rank_(rank), ia_(ia), ib_(ib) {}

  RankChange run() {
    compare_parts("scratch buffer", buffers(a_), buffers(b_));
    compare_parts("channel", channels(a_), channels(b_));
    compare_parts("semaphore", semaphores(a_), semaphores(b_));
    compare_parts("pipeline", pipelines(a_), pipelines(b_));
    compare_blocks();
    show_blocks();
    return std::move(out_);
  }

 private:
  using Part = std::pair<uint64_t, std::string>;  // what it is, and in words

  /// How one block changed, or several alike.
  struct BlockChange {
    RankChange ops;
    char sign = ' ';                  // '-' or '+': the whole block
    std::vector<std::string> places;  // with what they are now, if that is another number
  };

  static void say(RankChange& to, const std::string& line, uint64_t same) {
    to.text += line + "\n";
    to.same = mixed(to.same, same);
  }

  std::vector<Part> buffers(const Program& program) const {
    std::vector<Part> out;
    const auto all = std::span(program.ranks[rank_].buffers).subspan(kFirstScratch);
    for (const Buffer& b : all) {
      std::string words = fmt::format("{}[{}]", program.name_of(b.name), b.chunks);
      if (b.packets != PacketFormat::none) words += fmt::format(" packets: {}", name(b.packets));
      if (b.copies != 1) words += fmt::format(" copies: {}", b.copies);
      if (b.units != 0) words += fmt::format(" units: {}", b.units);
      out.emplace_back(coarse_identity(b), words);
    }
    return out;
  }

  std::vector<Part> channels(const Program& program) const {
    std::vector<Part> out;
    const uint64_t ranks = program.ranks.size();
    for (const Channel& c : program.ranks[rank_].channels) {
      uint64_t what = static_cast<uint64_t>(c.kind);
      for (const int64_t member : program.values(c.group)) {
        what = mixed(what, static_cast<uint64_t>(member));
      }
      const bool far = c.peer != kNone;
      // Seen from the rank, so that all ranks of a ring change in the same way.
      what = mixed(what, far ? (c.peer + ranks - rank_) % ranks : ranks);
      out.emplace_back(what, fmt::format("{} = {}{}", program.text(c.label), name(c.kind),
                                         far ? fmt::format("({})", c.peer) : ""));
    }
    return out;
  }

  std::vector<Part> semaphores(const Program& program) const {
    std::vector<Part> out;
    for (const Semaphore& s : program.ranks[rank_].semaphores) {
      out.emplace_back(s.initial, fmt::format("{} = {}", program.text(s.label), s.initial));
    }
    return out;
  }

  std::vector<Part> pipelines(const Program& program) const {
    std::vector<Part> out;
    std::map<int64_t, uint32_t> last;  // by block
    for (const Op& op : program.ranks[rank_].ops) {
      uint32_t& loop = last.try_emplace(op.block, kNone).first->second;
      if (op.loop != kNone && op.loop != loop) {
        const Loop& pipeline = program.loops[op.loop];
        TextWriter words;
        print_bytes(words << "unit: ", pipeline.unit);
        if (pipeline.chunks != 1) (words << ", chunks: ").number(pipeline.chunks);
        out.emplace_back(mixed(pipeline.unit, pipeline.chunks), words.take());
      }
      loop = op.loop;
    }
    return out;
  }

  /// What one side has more of. Equal ones pair up, whatever their names.
  void compare_parts(const char* what, const std::vector<Part>& a, const std::vector<Part>& b) {
    say_more('-', what, a, b);
    say_more('+', what, b, a);
  }

  void say_more(char sign, const char* what, const std::vector<Part>& here,
                const std::vector<Part>& there) {
    std::map<uint64_t, int64_t> spare;
    for (const Part& part : there) ++spare[part.first];
    std::map<uint64_t, std::pair<size_t, const std::string*>> more;  // how many, one of them
    std::vector<uint64_t> order;
    for (const Part& part : here) {
      if (--spare[part.first] >= 0) continue;
      auto& [count, one] = more[part.first];
      if (count++ == 0) {
        one = &part.second;
        order.push_back(part.first);
      }
    }
    for (const uint64_t each : order) {
      const auto& [count, one] = more[each];
      const std::string times = count == 1 ? "" : fmt::format(" (and {} alike)", count - 1);
      say(out_, fmt::format("  {} {} {}{}", sign, what, printable_line(*one), times),
          mixed(static_cast<uint64_t>(sign), mixed(each, count)));
    }
  }

  std::vector<uint64_t> ops_of(const Program& program, const RankIdentity& rank,
                               size_t block) const {
    std::vector<uint64_t> out;
    for (const uint32_t i : rank.ops[block]) {
      out.push_back(coarse_identity(program, rank_, program.ranks[rank_].ops[i]));
    }
    return out;
  }

  /// Blocks with the same ops pair up, then those that share most.
  void compare_blocks() {
    std::vector<std::vector<uint64_t>> a, b;
    for (size_t i = 0; i < ia_.ops.size(); ++i) a.push_back(ops_of(a_, ia_, i));
    for (size_t i = 0; i < ib_.ops.size(); ++i) b.push_back(ops_of(b_, ib_, i));
    std::vector<size_t> partner(a.size(), b.size());
    std::vector<bool> taken(b.size());
    const auto take = [&](size_t i, size_t k) {
      partner[i] = k;
      taken[k] = true;
    };
    std::multimap<std::vector<uint64_t>, size_t> by_ops;
    for (size_t k = 0; k < b.size(); ++k) by_ops.emplace(b[k], k);
    for (size_t i = 0; i < a.size(); ++i) {
      if (const auto at = by_ops.find(a[i]); at != by_ops.end()) {
        take(i, at->second);
        by_ops.erase(at);
      }
    }
    pair_the_rest(a, b, partner, taken, take);
    for (size_t i = 0; i < a.size(); ++i) {
      if (partner[i] == b.size()) {
        whole_block('-', a_, ia_, i);
      } else if (a[i] != b[partner[i]]) {
        changed_block(i, partner[i], edits(a[i], b[partner[i]]));
      }
    }
    for (size_t k = 0; k < b.size(); ++k) {
      if (!taken[k]) whole_block('+', b_, ib_, k);
    }
  }

  template <class Take>
  static void pair_the_rest(const std::vector<std::vector<uint64_t>>& a,
                            const std::vector<std::vector<uint64_t>>& b,
                            const std::vector<size_t>& partner, const std::vector<bool>& taken,
                            Take&& take) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (partner[i] != b.size()) continue;
      size_t best = b.size();
      uint32_t most = 0;
      for (size_t k = 0; k < b.size(); ++k) {
        if (taken[k]) continue;
        const uint32_t common = shared(a[i], b[k]);
        if (common > most || (common == most && common > 0 && k == i)) {
          best = k;
          most = common;
        }
      }
      if (best != b.size()) take(i, best);
    }
  }

  std::string op_text(const Program& program, uint32_t i) const {
    return printable_line(print_op(program, rank_, program.ranks[rank_].ops[i]));
  }

  uint64_t turned(const Program& program, uint32_t i) const {
    return coarse_identity(program, rank_, program.ranks[rank_].ops[i], true);
  }

  void whole_block(char sign, const Program& program, const RankIdentity& rank, size_t block) {
    RankChange ops;
    for (size_t i = 0; i < rank.ops[block].size(); ++i) {
      const uint32_t op = rank.ops[block][i];
      if (i == kMaxLines) ops.text += fmt::format("    {} …\n", sign);
      if (i >= kMaxLines) {
        ops.same = mixed(ops.same, turned(program, op));
      } else {
        say(ops, fmt::format("    {} {}", sign, op_text(program, op)), turned(program, op));
      }
    }
    add_block(sign, place_text(program, rank.places[block]), std::move(ops));
  }

  void changed_block(size_t i, size_t k, const std::vector<Edit>& edits) {
    RankChange ops;
    size_t shown = 0, last = edits.size();
    for (size_t e = 0; e < edits.size(); ++e) {
      if (!is_near_change(edits, e)) continue;
      const bool added = edits[e].kind == Edit::added;
      const Program& program = added ? b_ : a_;
      const uint32_t op = added ? ib_.ops[k][edits[e].b] : ia_.ops[i][edits[e].a];
      const uint64_t same = mixed(edits[e].kind, turned(program, op));
      if (shown == kMaxLines) ops.text += "    …\n";
      if (shown++ >= kMaxLines) {
        ops.same = mixed(ops.same, same);
        continue;
      }
      if (e > 0 && last != e - 1) ops.text += "    …\n";
      last = e;
      say(ops, fmt::format("    {} {}", " -+"[edits[e].kind], op_text(program, op)), same);
    }
    const std::string from = place_text(a_, ia_.places[i]), to = place_text(b_, ib_.places[k]);
    add_block(' ', from == to ? from : from + " (now " + to + ")", std::move(ops));
  }

  void add_block(char sign, const std::string& place, RankChange ops) {
    const auto same = std::ranges::find_if(blocks_, [&](const BlockChange& other) {
      return other.sign == sign && other.ops.same == ops.same;
    });
    if (same != blocks_.end()) {
      same->places.push_back(place);
    } else {
      blocks_.push_back({std::move(ops), sign, {place}});
    }
  }

  void show_blocks() {
    for (const BlockChange& block : blocks_) {
      const size_t more = block.places.size() - 1;
      std::string places = block.places[0];
      if (more > 0)
        places += fmt::format(", and {} that change alike, to {}", more, block.places[more]);
      const std::string sign = block.sign == ' ' ? "" : fmt::format("{} ", block.sign);
      say(out_, fmt::format("  {}{}:", sign, places), mixed(block.ops.same, more));
      out_.text += block.ops.text;
    }
  }

  static bool is_near_change(const std::vector<Edit>& edits, size_t e) {
    const size_t begin = e > kContext ? e - kContext : 0;
    const size_t end = std::min(edits.size(), e + kContext + 1);
    for (size_t k = begin; k < end; ++k) {
      if (edits[k].kind != Edit::both) return true;
    }
    return false;
  }

  const Program &a_, &b_;
  const uint32_t rank_;
  const RankIdentity &ia_, &ib_;
  std::vector<BlockChange> blocks_;
  RankChange out_;
};

std::string ranks_text(const std::vector<uint32_t>& ranks) {
  TextWriter out;
  const std::vector<int64_t> values(ranks.begin(), ranks.end());
  if (ranks.size() == 1) {
    (out << "rank ").number(ranks[0]);
    return out.take() + ":\n";
  }
  print_set(out << "ranks ", values);
  (out << ", as rank ").number(ranks[0]);
  return out.take() + ":\n";
}

std::string rank_differences(const Program& a, const Program& b) {
  const auto ia = identities(a), ib = identities(b);
  const uint32_t ranks = static_cast<uint32_t>(std::min(ia.size(), ib.size()));
  std::vector<std::pair<RankChange, std::vector<uint32_t>>> groups;
  std::map<uint64_t, size_t> known;
  std::vector<uint32_t> connected;
  for (uint32_t r = 0; r < ranks; ++r) {
    if (ia[r].all == ib[r].all) continue;
    RankChange change = RankDiff(a, b, r, ia[r], ib[r]).run();
    if (change.text.empty()) {
      connected.push_back(r);
      continue;
    }
    const auto [at, is_new] = known.try_emplace(change.same, groups.size());
    if (is_new) groups.push_back({std::move(change), {}});
    groups[at->second].second.push_back(r);
  }
  std::string text;
  for (const auto& [change, of] : groups) text += ranks_text(of) + change.text;
  // What changes at one rank shows in the connections of all; that is news only by itself.
  if (!groups.empty() || connected.empty()) return text;
  return ranks_text(connected) +
         "  the same ops, through other channels, scratch buffers or semaphores\n";
}

}  // namespace

std::string differences(const PlanSide& a, const PlanSide& b) {
  const std::string head = head_differences(a.program, b.program);
  const std::string ranks = rank_differences(a.program, b.program);
  std::string facts = fact_differences(a.facts, b.facts);
  if (head.empty() && facts.empty() && ranks.empty()) return "";
  if (a.predicted && b.predicted) facts += fact_differences(a.predicted(), b.predicted());
  return head + facts + ranks;
}

}  // namespace mscclc::diff
