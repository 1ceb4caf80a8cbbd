// An explanation as text for people.
#include <fmt/format.h>

#include "executor/cost/explanation.h"

namespace mscclc::cost {

std::string size_text(uint64_t bytes) {
  constexpr std::pair<uint64_t, const char*> kUnits[] = {
      {uint64_t{1} << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes < unit) continue;
    if (bytes % unit == 0) return fmt::format("{} {}", bytes / unit, name);
    return fmt::format("{:.2f} {}", static_cast<double>(bytes) / static_cast<double>(unit), name);
  }
  return fmt::format("{} bytes", bytes);
}

std::string exact_size_text(uint64_t bytes) {
  uint64_t unit = 1;
  while (unit < uint64_t{1} << 30 && bytes / unit >= 1024) unit *= 1024;
  const bool exact = bytes % unit * 100 % unit == 0;  // with two digits
  return exact ? size_text(bytes) : fmt::format("{} bytes", bytes);
}

namespace {

std::string many(uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string head(const Explanation& e) {
  std::string text = fmt::format("{}: {} of {} ({}) over {}, on {} ({})\n\n", e.name, e.collective,
                                 exact_size_text(e.bytes), e.dtype, many(e.ranks, "rank"),
                                 e.machine, e.measured ? "measured" : "from published figures");
  if (e.asked_bytes) {
    text +=
        fmt::format("asked for {}; a call has whole elements, or rows, for every rank: here {}\n\n",
                    exact_size_text(*e.asked_bytes), exact_size_text(e.bytes));
  }
  if (!e.description.empty()) text += fmt::format("{}\n\n", e.description);
  return text;
}

std::string figures(const Explanation& e) {
  const double bound = e.bound.ns / 1e3;
  std::string text =
      fmt::format("time      {:.2f} us a call, back to back; {:.2f} us alone\n", e.us, e.alone_us);
  if (bound > 0) {
    text += fmt::format(
        "bound     {:.2f} us at least, whatever the plan; this one takes {:.2f} "
        "times that\n",
        bound, e.us / bound);
  }
  text += fmt::format("hops      {}; at least {}\n", e.hops, e.bound.hops);
  text += fmt::format("limit     {}:", kCauseNames[static_cast<size_t>(e.limit())]);
  for (size_t c = 0; c < kCauses; ++c) {
    if (e.causes_us[c] <= 0) continue;
    text += fmt::format(" {} {:.0f} %{}", kCauseNames[c], 100 * e.causes_us[c] / e.alone_us, ",");
  }
  if (text.back() == ',') text.pop_back();
  text += fmt::format("\nblocks    {} a rank, {} threads each\nscratch   {} a rank\n", e.blocks,
                      e.threads, size_text(e.scratch_bytes));
  if (e.columns == 0) return text;
  return text + from_table_text(e) +
         fmt::format(
             "rows      {} of {} columns; the time of their function is not fitted to "
             "measurements: it counts what is read and written, not what is computed\n",
             e.rows, e.columns);
}

std::string traffic(const Explanation& e) {
  std::string text = "\ntraffic of a call, where it is most\n";
  for (const TrafficLine& line : e.traffic) {
    text += fmt::format("  {:<24}{:>12}", line.link, size_text(line.bytes));
    if (line.least) {
      text += fmt::format("   at least {}", size_text(*line.least));
      if (*line.least > 0 && line.bytes > 0) {
        text += fmt::format(" ({:.2f} times)",
                            static_cast<double>(line.bytes) / static_cast<double>(*line.least));
      }
    }
    text += "\n";
  }
  return text;
}

std::string path(const Explanation& e) {
  std::string text = "\ncritical path of a call alone, us\n     from     takes\n";
  for (const PathLine& line : e.path) {
    text += fmt::format("  {:>7.2f}  {:>8.2f}  {:<8}", line.begin_us, line.end_us - line.begin_us,
                        kCauseNames[static_cast<size_t>(line.cause)]);
    if (!line.op.empty()) {
      text += fmt::format("rank {} tb {}  {}{}", line.rank, line.block,
                          line.place.empty() ? "" : line.place + ": ", line.op);
    }
    if (line.times > 1) text += fmt::format("  ({} times)", line.times);
    while (text.back() == ' ') text.pop_back();
    text += "\n";
  }
  return text;
}

std::string syncs(const Explanation& e) {
  if (e.syncs.empty()) return "\nsynchronisation: none but by packets\n";
  std::string text = "\nsynchronisation\n";
  for (const SyncLine& line : e.syncs) {
    text += fmt::format("  {:<16}{:>7} x  {}{}\n", line.op, line.count,
                        line.place.empty() ? "" : line.place + ": ", line.why);
  }
  return text;
}

std::string passes(const Explanation& e) {
  if (e.passes.empty()) return "";
  std::string text = "\nwhat passes did\n";
  for (const PassLine& line : e.passes) {
    text += fmt::format("  {:<14}{}{}\n", line.pass, line.place.empty() ? "" : line.place + ": ",
                        line.did);
  }
  return text;
}

std::string choices(const Explanation& e) {
  if (e.why_picked.empty()) return "";
  std::string text = fmt::format("\nchoice    {}\n", e.why_picked);
  for (const ChoiceLine& line : e.choices) {
    text += fmt::format("  {:>9.2f} us  {}{}\n", line.us, line.plan,
                        line.picked ? "  (what the library picks)" : "");
  }
  return text;
}

}  // namespace

std::string nothing_text(const Explanation& e) {
  return e.why_nothing.empty() ? "" : "nothing is launched: " + e.why_nothing;
}

std::string from_table_text(const Explanation& e) {
  if (e.from_table.empty()) return "";
  return fmt::format("table     {}: what plans/rows/library.json gives the program\n",
                     e.from_table);
}

std::string not_proved_text(const Explanation& e) {
  if (!e.not_proved || e.not_proved->empty()) return "";
  return fmt::format(
      "NOT PROVED, so it may go wrong whatever it takes ('mscclc verify' says all): {}\n",
      *e.not_proved);
}

std::string explanation_text(const Explanation& e) {
  const std::string wrong = not_proved_text(e);
  const std::string times = e.why_nothing.empty()
                                ? figures(e) + traffic(e) + path(e) + syncs(e)
                                : fmt::format("time      none, as {}\n", nothing_text(e));
  return head(e) + (wrong.empty() ? "" : wrong + "\n") + times + passes(e) + choices(e);
}

}  // namespace mscclc::cost
