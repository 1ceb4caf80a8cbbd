#include "tools/report/call_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/diagnostics/printable.h"
#include "runtime/support/observe/call_trace.h"
#include "tools/io/json_text.h"
#include "tools/report/record_reader.h"

namespace mscclc {
namespace {

using nlohmann::json;
using CallKey = std::pair<uint32_t, uint64_t>;  ///< executable and call

constexpr size_t kMaxShown = 8;
constexpr uint64_t kMaxTime = uint64_t{1} << 60;  // differences of differences fit, too

int64_t time_of(const json& value, RecordReader& reader) {
  if (value.is_number_unsigned() && value.get<uint64_t>() <= kMaxTime) return value.get<int64_t>();
  reader.fail("a time is not a number of nanoseconds");
  return 0;
}

void take_marks(const json& root, RecordReader& reader, RankCalls& rank) {
  for (const json& mark : reader.list(root, "marks")) {
    if (!mark.is_array() || mark.size() != 3) return reader.fail("a mark is not three numbers");
    const auto number = static_cast<uint64_t>(time_of(mark[0], reader));
    rank.stays[number] = {time_of(mark[1], reader), time_of(mark[2], reader)};
  }
}

void take_calls(const json& root, RecordReader& reader, RankCalls& rank) {
  constexpr uint64_t kMaxExecutable = 0xffffffff, kAny = ~uint64_t{0};
  std::map<uint64_t, std::pair<std::string, std::string>> plans;
  for (const json& plan : reader.list(root, "plans")) {
    plans[reader.number(plan, "executable", kMaxExecutable)] = {reader.text(plan, "name"),
                                                                reader.text(plan, "collective")};
  }
  for (const json& call : reader.list(root, "calls")) {
    const auto executable =
        static_cast<uint32_t>(reader.number(call, "executable", kMaxExecutable));
    const auto& [plan, collective] = plans[executable];
    RankCalls::TracedCall made{
        .collective = collective,
        .dtype = reader.text(call, "dtype"),
        .op = reader.text(call, "op"),
        .plan = plan,
        .bytes = reader.number(call, "bytes", kAny),
        .stream = reader.number(call, "stream", kAny),
        .launched = static_cast<int64_t>(reader.number(call, "launched_ns", kMaxTime)),
        .ended = std::nullopt};
    if (call.is_object() && call.contains("ended_ns") && !call["ended_ns"].is_null()) {
      made.ended = time_of(call["ended_ns"], reader);
    }
    rank.calls[{executable, reader.number(call, "call", kAny)}] = std::move(made);
  }
}

double us(int64_t ns) { return static_cast<double>(ns) / 1e3; }

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto half = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, half);
  return *half;
}

/// The files of one communicator, by rank.
class TracedGroup {
 public:
  explicit TracedGroup(std::vector<const RankCalls*> ranks) : ranks_(std::move(ranks)) {
    for (const RankCalls* r : ranks_) {
      const RankCalls& first = *ranks_.front();
      offsets_.push_back(r == &first ? ClockOffset{.known = true}
                                     : clock_offset(first.stays, r->stays, r->host == first.host));
      if (offsets_.back().known) known_.push_back(offsets_.size() - 1);
    }
  }

  std::string text() {
    find_late();
    const RankCalls& first = *ranks_.front();
    out_ = fmt::format("files of {} of {} ranks; {} calls are in all of them\n", ranks_.size(),
                       first.size, calls_.size());
    clocks();
    if (calls_.empty() || known_.size() < 2) return out_;
    table();
    furthest();
    return out_;
  }

  const std::vector<const RankCalls*>& ranks() const { return ranks_; }
  /// Is it known how far a rank's clock is from the first rank's?
  bool has_clock(size_t i) const { return offsets_[i].known; }
  /// A time of a rank's clock by the first rank's.
  int64_t on_first(size_t i, int64_t ns) const { return ns - offsets_[i].ahead; }

 private:
  struct Late {
    CallKey call;
    size_t first = 0, last = 0;  ///< in known_
    std::vector<int64_t> after;  ///< of each of known_, nanoseconds after the first
    int64_t most() const { return after[last]; }
  };

  void find_late() {
    for (const auto& [key, call] : ranks_.front()->calls) {
      if (!std::ranges::all_of(ranks_, [&k = key](auto* r) { return r->calls.contains(k); }))
        continue;
      Late late;
      late.call = key;
      std::vector<int64_t> came;
      for (const size_t i : known_) came.push_back(on_first(i, ranks_[i]->calls.at(key).launched));
      late.first = static_cast<size_t>(std::ranges::min_element(came) - came.begin());
      late.last = static_cast<size_t>(std::ranges::max_element(came) - came.begin());
      for (const int64_t t : came) late.after.push_back(t - came[late.first]);
      calls_.push_back(std::move(late));
    }
  }

  void clocks() {
    const RankCalls& first = *ranks_.front();
    int64_t unsure = 0;
    bool one = true;
    for (size_t i = 1; i < ranks_.size(); ++i) {
      const ClockOffset& offset = offsets_[i];
      unsure = std::max(unsure, offset.give_or_take);
      if (!offset.known) {
        out_ += fmt::format(
            "clocks: nothing says how far that of rank {} is from that of rank {}: it is "
            "left out\n",
            ranks_[i]->rank, first.rank);
      } else if (offset.ahead != 0 || offset.give_or_take != 0) {
        out_ += fmt::format(
            "clocks: that of rank {} is {:.1f} us ahead of that of rank {}, give or "
            "take {:.1f} us\n",
            ranks_[i]->rank, us(offset.ahead), first.rank, us(offset.give_or_take));
      } else {
        continue;
      }
      one = false;
    }
    if (one && ranks_.size() > 1) out_ += "clocks: all ranks have the same\n";
    if (unsure > 0) {
      out_ += fmt::format(
          "        ranks that came closer together than {:.1f} us may have come in "
          "another order\n",
          us(2 * unsure));
    }
  }

  void table() {
    out_ += fmt::format(
        "\nhow late each rank came, in us after the first to come\n{:>6}{:>14}{:>12}{:>12}"
        "  {}\n",
        "rank", "came last to", "median", "most", "at");
    for (size_t i = 0; i < known_.size(); ++i) {
      std::vector<double> all;
      size_t last = 0;
      const Late* worst = &calls_.front();
      for (const Late& late : calls_) {
        all.push_back(us(late.after[i]));
        last += late.last == i && late.most() > 0 ? 1 : 0;
        if (late.after[i] > worst->after[i]) worst = &late;
      }
      out_ += fmt::format("{:>6}{:>14}{:>12.1f}{:>12.1f}  {}\n", of_known(i).rank, last,
                          middle(all), us(worst->after[i]), call_name(worst->call));
    }
  }

  void furthest() {
    std::ranges::stable_sort(calls_, std::greater<>(), &Late::most);
    out_ += "\nthe calls whose ranks came furthest apart\n";
    for (size_t n = 0; n < std::min(calls_.size(), kMaxShown); ++n) {
      const Late& late = calls_[n];
      const RankCalls& last = of_known(late.last);
      const RankCalls::TracedCall& call = last.calls.at(late.call);
      out_ +=
          fmt::format("{:>10.1f} us  {}: rank {} after rank {}; {} of {} bytes, {}, {} ('{}')\n",
                      us(late.most()), call_name(late.call), last.rank, of_known(late.first).rank,
                      call.collective, call.bytes, call.dtype, call.op, call.plan);
    }
  }

  const RankCalls& of_known(size_t i) const { return *ranks_[known_[i]]; }

  static std::string call_name(const CallKey& key) {
    return fmt::format("call {} of executable {}", key.second, key.first);
  }

  const std::vector<const RankCalls*> ranks_;
  std::vector<ClockOffset> offsets_;
  std::vector<size_t> known_;  ///< those in ranks_ whose clocks can be compared
  std::vector<Late> calls_;
  std::string out_;
};

using Ranks = std::vector<const RankCalls*>;

/// A file that is given twice, or a copy of one.
bool same_record(const RankCalls& a, const RankCalls& b) {
  return a.group == b.group && a.rank == b.rank;
}

/// By communicator.
std::vector<Ranks> by_group(const std::vector<RankCalls>& files) {
  std::map<std::string, std::map<uint32_t, const RankCalls*>> groups;
  for (const RankCalls& file : files) groups[file.group][file.rank] = &file;
  std::vector<Ranks> all;
  for (const auto& [group, ranks] : groups) {
    Ranks& own = all.emplace_back();
    for (const auto& [rank, file] : ranks) own.push_back(file);
  }
  return all;
}

/// Do these files, of two communicators, look like those of one? Each has what the other lacks, as
/// where a file's name is that of an earlier job.
bool mixed(const Ranks& a, const Ranks& b) {
  return a.front()->size == b.front()->size && std::ranges::none_of(a, [&](const RankCalls* one) {
           return std::ranges::count(b, one->rank, &RankCalls::rank) != 0;
         });
}

std::string in_quotes(const RankCalls& rank) { return mscclc::quoted(rank.file, rank.file.size()); }

void differ(const std::string& how, Diagnostics& diagnostics) {
  diagnostics.error("traces-differ", {}, how);
}

/// When the first call of each group was, by the clock that its times are by. Groups whose first
/// ranks are on one host have one clock, and begin together.
std::vector<int64_t> begins_of(const std::vector<TracedGroup>& groups) {
  std::map<std::string, int64_t> by_host;
  for (const TracedGroup& group : groups) {
    const std::string& host = group.ranks().front()->host;
    for (size_t i = 0; i < group.ranks().size(); ++i) {
      if (!group.has_clock(i)) continue;
      for (const auto& [key, call] : group.ranks()[i]->calls) {
        const int64_t at = group.on_first(i, call.launched);
        const auto [begin, fresh] = by_host.try_emplace(host, at);
        if (!fresh) begin->second = std::min(begin->second, at);
      }
    }
  }
  std::vector<int64_t> begins;
  for (const TracedGroup& group : groups) begins.push_back(by_host[group.ranks().front()->host]);
  return begins;
}

/// Events of Chrome's format: a process for each rank of a group, with a number of its own.
class ChromeCalls {
 public:
  explicit ChromeCalls(bool names_groups) : names_groups_(names_groups) {}

  /// The i-th rank of a group, whose times count from `begin`: those of an unknown clock from the
  /// rank's first call.
  void add(const TracedGroup& group, size_t i, int64_t begin) {
    const RankCalls& rank = *group.ranks()[i];
    if (!group.has_clock(i)) begin = first_launch(rank);
    name_process(rank);
    std::set<uint64_t> tracks;  // that have a name
    for (const auto& [key, call] : rank.calls) {
      const uint64_t track = call.stream % 0xffffffff;
      if (tracks.insert(track).second) {
        event(fmt::format(
            R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"stream {:#x}"}}}})",
            process_, track, call.stream));
      }
      const int64_t takes = call.ended ? std::max<int64_t>(*call.ended - call.launched, 0) : 1000;
      event(fmt::format(
          R"({{"ph":"X","name":{},"cat":"call","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},)"
          R"("args":{{"executable":{},"call":{},"bytes":{},"dtype":{},"op":{},"plan":{},"end_known":{}}}}})",
          json_quoted(call.collective), process_, track,
          us(group.on_first(i, call.launched) - begin), us(takes), key.first, key.second,
          call.bytes, json_quoted(call.dtype), json_quoted(call.op), json_quoted(call.plan),
          call.ended.has_value()));
    }
    ++process_;
  }

  std::string text() const {
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" + events_ + "\n]}\n";
  }

 private:
  static int64_t first_launch(const RankCalls& rank) {
    int64_t first = std::numeric_limits<int64_t>::max();
    for (const auto& [key, call] : rank.calls) first = std::min(first, call.launched);
    return first;
  }

  void event(const std::string& text) { events_ += (events_.empty() ? "\n" : ",\n") + text; }

  void name_process(const RankCalls& rank) {
    const std::string of = names_groups_ ? " of group " + rank.group : "";
    event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})",
                      process_,
                      json_quoted(fmt::format("rank {}{} on {}", rank.rank, of, rank.host))));
    event(fmt::format(
        R"({{"ph":"M","name":"process_sort_index","pid":{0},"tid":0,"args":{{"sort_index":{0}}}}})",
        process_));
  }

  const bool names_groups_;
  uint32_t process_ = 0;
  std::string events_;
};

}  // namespace

bool is_call_trace(std::string_view text) {
  const json root = json::parse(text, nullptr, false);
  return root.is_object() && root.contains("mscclc_trace");
}

std::optional<RankCalls> read_calls(std::string_view text, const std::string& name,
                                    Diagnostics& diagnostics) {
  const json root = json::parse(text, nullptr, false);
  RecordReader reader;
  RankCalls rank;
  rank.file = name;
  if (reader.opens(root, "mscclc_trace", kTraceVersion)) {
    rank.rank = static_cast<uint32_t>(reader.number(root, "rank", RecordReader::kMaxRank));
    rank.size = static_cast<uint32_t>(reader.number(root, "size", RecordReader::kMaxRank + 1));
    rank.host = reader.text(root, "host");
    rank.group = reader.text(root, "group");
    rank.launched = reader.number(root, "launched", kMaxTime);
    take_marks(root, reader, rank);
    take_calls(root, reader, rank);
    if (rank.rank >= rank.size) reader.fail("'rank' is not less than 'size'");
  }
  if (reader.error().empty()) return rank;
  diagnostics.error("not-a-trace", {},
                    fmt::format("{} is not a record of a rank's calls: {}",
                                mscclc::quoted(name, name.size()), reader.error()));
  return std::nullopt;
}

std::optional<std::string> report_calls(std::vector<RankCalls> files, Diagnostics& diagnostics) {
  for (auto a = files.begin(); a != files.end(); ++a) {
    const auto b =
        std::find_if(files.begin(), a, [&](const auto& f) { return same_record(*a, f); });
    if (b == a) continue;
    differ(fmt::format("{} and {} are the same record of rank {}", in_quotes(*b), in_quotes(*a),
                       a->rank),
           diagnostics);
    return std::nullopt;
  }
  std::string text;
  const std::vector<Ranks> groups = by_group(files);
  for (const Ranks& ranks : groups) {
    const RankCalls& first = *ranks.front();
    for (const RankCalls* r : ranks) {
      if (r->size == first.size) continue;
      differ(fmt::format("{} is of {} ranks, {} of {}", in_quotes(first), first.size, in_quotes(*r),
                         r->size),
             diagnostics);
      return std::nullopt;
    }
    const auto other =
        std::ranges::find_if(groups, [&](const Ranks& g) { return mixed(ranks, g); });
    if (other != groups.end()) {
      differ(fmt::format("{} and {} are of two jobs, or communicators: the files of each have a "
                         "'group' of their own",
                         in_quotes(first), in_quotes(*other->front())),
             diagnostics);
      return std::nullopt;
    }
    text += (text.empty() ? "" : "\n") + TracedGroup(ranks).text();
  }
  return text;
}

std::string chrome_calls(const std::vector<RankCalls>& files) {
  const auto groups = by_group(files);
  std::vector<TracedGroup> all;
  for (const auto& ranks : groups) all.emplace_back(ranks);
  ChromeCalls chrome(all.size() > 1);
  const auto begins = begins_of(all);
  for (size_t n = 0; n < all.size(); ++n) {
    for (size_t i = 0; i < all[n].ranks().size(); ++i) chrome.add(all[n], i, begins[n]);
  }
  return chrome.text();
}

}  // namespace mscclc
