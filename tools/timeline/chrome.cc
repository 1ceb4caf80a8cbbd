#include "tools/timeline/chrome.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "executor/cost/place.h"
#include "ir/diagnostics/printable.h"
#include "ir/print/print.h"
#include "tools/io/json_text.h"

namespace mscclc::timeline {
namespace {

double us(double ns) { return ns / 1e3; }

/// Names come from plans, which may hold anything.
std::string in_json(const std::string& text) { return json_quoted(printable_line(text)); }

class Writer {
 public:
  Writer(const CallFacts& facts, const Trace& trace) : program_(facts.program), trace_(trace) {
    for (const PathPart& part : trace.path) critical_.insert(part.slice);
    for (const Arrow& arrow : trace.arrows) {
      auto& known = waited_for_[arrow.to];
      if (known == nullptr || known->came < arrow.came) known = &arrow;
    }
    path_process_ = static_cast<uint32_t>(program_.ranks.size());
  }

  std::string text(const std::string& title) {
    out_ = fmt::format(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"call\":{},\"times\":{}}},\n"
        "\"traceEvents\":[\n",
        in_json(title), in_json(trace_.how));
    names();
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) slice(i);
    for (size_t i = 0; i < trace_.arrows.size(); ++i) arrow(i);
    for (const PathPart& part : trace_.path) path(part);
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  void add(const std::string& event) {
    if (!first_) out_ += ",\n";
    first_ = false;
    out_ += event;
  }
  void meta(const char* what, uint32_t process, uint32_t thread, const std::string& args) {
    add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, process,
                    thread, args));
  }
  void name_process(uint32_t process, const std::string& name, int order) {
    meta("process_name", process, 0, "\"name\":" + in_json(name));
    meta("process_sort_index", process, 0, fmt::format("\"sort_index\":{}", order));
  }
  void names() {
    name_process(path_process_, "critical path", -1);
    meta("thread_name", path_process_, 0, "\"name\":\"critical path\"");
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      name_process(r, fmt::format("rank {}", r), static_cast<int>(r));
      for (uint32_t b = 0; b < program_.ranks[r].blocks; ++b) {
        meta("thread_name", r, b, fmt::format("\"name\":\"thread block {}\"", b));
      }
    }
  }
  std::string who(uint32_t slice) const {
    const Slice& s = trace_.slices[slice];
    return fmt::format("rank {} tb {}: {}", s.rank, s.block, op_name(program_, s));
  }
  void slice(uint32_t i) {
    const Slice& s = trace_.slices[i];
    const Op& op = program_.ranks[s.rank].ops[s.source];
    std::string args = fmt::format("\"op\":{},\"line\":{},\"bytes\":{},\"round\":{}",
                                   in_json(print_op(program_, s.rank, op)),
                                   in_json(cost::place_of(program_, op)), s.bytes, s.round);
    if (s.waited() > 0) args += fmt::format(",\"waited_us\":{:.4f}", us(s.waited()));
    if (const auto at = waited_for_.find(i); at != waited_for_.end()) {
      args += ",\"waited_for\":" + in_json(who(at->second->from));
    }
    if (critical_.contains(i)) args += ",\"critical\":true";
    add(fmt::format(
        R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.4f},"dur":{:.4f},"args":{{{}}}}})",
        in_json(std::string(op_name(program_, s))), class_of(s), s.rank, s.block, us(s.begin),
        us(s.end - s.begin), args));
  }
  /// An end of an arrow belongs to the slice that it lies in: at the border it could be the next.
  static double inside(const Slice& s, double at) {
    const double margin = (s.end - s.begin) / 1000;
    return std::clamp(at, s.begin + margin, s.end - margin);
  }
  void end_of_arrow(const char* phase, size_t id, const Arrow& arrow, uint32_t slice, double at,
                    const char* more) {
    const Slice& s = trace_.slices[slice];
    const char* name = arrow.packets ? "packets" : "signal";
    add(fmt::format(
        R"({{"ph":"{}","name":"{}","cat":"{}","id":{},"pid":{},"tid":{},"ts":{:.4f}{}}})", phase,
        name, name, id, s.rank, s.block, us(at), more));
  }
  void arrow(size_t id) {
    const Arrow& a = trace_.arrows[id];
    const Slice& to = trace_.slices[a.to];
    const double left = inside(trace_.slices[a.from], a.left);
    // Not before it has left: where both times are one, or clocks are apart.
    const double came = inside(to, std::max(a.came, left));
    end_of_arrow("s", id, a, a.from, std::min(left, came), "");
    end_of_arrow("f", id, a, a.to, came, R"(,"bp":"e")");
  }
  void path(const PathPart& part) {
    const std::string what = part.slice == kNone
                                 ? std::string(part.cause)
                                 : fmt::format("{}, {}", part.cause, who(part.slice));
    add(fmt::format(
        R"({{"ph":"X","name":{},"cat":"path","pid":{},"tid":0,"ts":{:.4f},"dur":{:.4f},"args":{{}}}})",
        in_json(what), path_process_, us(part.begin), us(part.end - part.begin)));
  }

  const Program& program_;
  const Trace& trace_;
  std::set<uint32_t> critical_;
  std::map<uint32_t, const Arrow*> waited_for_;  ///< by slice: what came last
  uint32_t path_process_ = 0;
  std::string out_;
  bool first_ = true;
};

}  // namespace

std::string chrome_trace(const CallFacts& facts, const Trace& trace) {
  return Writer(facts, trace).text(facts.title);
}

}  // namespace mscclc::timeline
