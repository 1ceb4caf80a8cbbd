#include "tools/timeline/page.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "executor/cost/place.h"
#include "ir/diagnostics/printable.h"
#include "ir/print/print.h"
#include "tools/io/json_text.h"
#include "tools/io/xml_text.h"
#include "tools/timeline/page_parts.h"

namespace mscclc::timeline {
namespace {

/// Of class_of(); the script has their colours.
constexpr std::array<std::string_view, 6> kClasses = {"moves",   "sums",  "packets",
                                                      "signals", "waits", "meets"};

size_t index_of(std::string_view name) {
  size_t i = 0;
  while (i < kClasses.size() && kClasses[i] != name) ++i;
  return i;
}

/// JSON in a script element: no '<' ends it.
std::string in_script(const std::string& text) {
  std::string out;
  for (const char c : json_quoted(printable_line(text))) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

int64_t whole(double ns) { return std::llround(ns); }

/// The data of the page: texts of ops once, and numbers in flat lists.
class Data {
 public:
  explicit Data(const CallFacts& facts) : facts_(facts), program_(facts.program) {}

  std::string text(const std::vector<Trace>& traces) {
    std::string views;
    for (const Trace& trace : traces) views += (views.empty() ? "" : ",\n") + view(trace);
    std::string blocks, classes;
    for (const Rank& rank : program_.ranks) {
      blocks += fmt::format("{}{}", blocks.empty() ? "" : ",", rank.blocks);
    }
    for (const std::string_view name : kClasses) {
      classes += fmt::format("{}\"{}\"", classes.empty() ? "" : ",", name);
    }
    return fmt::format(
        "{{\"title\":{},\"blocks\":[{}],\"classes\":[{}],\n\"ops\":[{}],\n\"views\":[\n{}]}}\n",
        in_script(facts_.title), blocks, classes, ops_, views);
  }

 private:
  size_t op_of(const Slice& s) {
    const auto [at, is_new] = known_.try_emplace({s.rank, s.source, s.kind}, known_.size());
    if (!is_new) return at->second;
    const Op& op = program_.ranks[s.rank].ops[s.source];
    ops_ += fmt::format("{}\n[{},{},{},{}]", known_.size() == 1 ? "" : ",",
                        in_script(std::string(op_name(program_, s))),
                        in_script(print_op(program_, s.rank, op)),
                        in_script(cost::place_of(program_, op)), index_of(class_of(s)));
    return at->second;
  }
  std::string view(const Trace& trace) {
    std::string slices, arrows, path;
    for (const Slice& s : trace.slices) {
      slices += fmt::format("{}[{},{},{},{},{},{},{},{},{},{},{}]", slices.empty() ? "" : ",\n",
                            s.rank, s.block, op_of(s), s.round, s.record, s.bytes, whole(s.begin),
                            whole(s.work), whole(s.idle), whole(s.back), whole(s.end));
    }
    for (const Arrow& a : trace.arrows) {
      arrows += fmt::format("{}[{},{},{},{},{}]", arrows.empty() ? "" : ",", a.from, a.to,
                            a.packets ? 1 : 0, whole(a.left), whole(a.came));
    }
    for (const PathPart& p : trace.path) {
      path += fmt::format("{}[{},\"{}\",{},{}]", path.empty() ? "" : ",",
                          p.slice == kNone ? -1 : static_cast<int64_t>(p.slice), p.cause,
                          whole(p.begin), whole(p.end));
    }
    return fmt::format(
        "{{\"how\":{},\"predicted\":{},\"end\":{},\n\"slices\":[{}],\n\"arrows\":[{}],\n"
        "\"path\":[{}]}}",
        in_script(trace.how), trace.predicted, whole(trace.end), slices, arrows, path);
  }

  const CallFacts& facts_;
  const Program& program_;
  std::map<std::tuple<uint32_t, uint32_t, device::StepKind>, size_t> known_;
  std::string ops_;
};

constexpr std::string_view kHead = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
)html";

}  // namespace

std::string timeline_page(const CallFacts& facts, const std::vector<Trace>& traces) {
  std::string out(kHead);
  out += "<title>" + xml_escaped(facts.title) + "</title>\n";
  out += kPageStyle;
  out += kPageBody;
  out +=
      "<script type=\"application/json\" id=\"data\">\n" + Data(facts).text(traces) + "</script>\n";
  out += kPageScript;
  return out;
}

}  // namespace mscclc::timeline
