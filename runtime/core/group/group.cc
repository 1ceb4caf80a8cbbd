#include "runtime/core/group/group.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/precondition.h"
#include "runtime/support/observe/call_trace.h"

namespace mscclc {
namespace {

constexpr uint8_t kAble = 1, kUnable = 0;
constexpr size_t kMaxText = 4096;

const Diagnostic* last_error(const Diagnostics& diagnostics) {
  const auto& all = diagnostics.all();
  const auto found = std::find_if(all.rbegin(), all.rend(),
                                  [](const auto& d) { return d.severity == Severity::error; });
  return found == all.rend() ? nullptr : &*found;
}

void add_unable(uint32_t rank, const std::string& text, std::vector<Unable>& unable) {
  const auto found =
      std::find_if(unable.begin(), unable.end(), [&](const Unable& u) { return u.text == text; });
  if (found == unable.end()) {
    unable.push_back({text, {rank}});
  } else {
    found->ranks.push_back(rank);
  }
}

/// "rank 1", "ranks 0, 2 and 5", "ranks 0 to 7".
std::string name_ranks(const std::vector<uint32_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.size() > 2 && ranks.back() - ranks.front() == ranks.size() - 1) {
    return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  }
  const std::span all(ranks);
  return fmt::format("ranks {} and {}", fmt::join(all.first(all.size() - 1), ", "), all.back());
}

/// Adds a note to the last error. REQUIRES: there is one.
void note_at_last_error(const std::string& text, Diagnostics& diagnostics) {
  const Diagnostic* const last = last_error(diagnostics);
  precondition(last != nullptr);
  Diagnostics noted;
  for (const Diagnostic& d : diagnostics.all()) {
    Diagnostic& added = noted.add(d);
    if (&d == last) added.notes.push_back({text});
  }
  diagnostics = std::move(noted);
}

std::string text_of(const Diagnostic* error) {
  if (error == nullptr) return "it does not say why";
  std::string text = error->message;
  for (const Note& note : error->notes) text += "; " + note.text;  // the cause may stand there
  return text.substr(0, kMaxText);
}

}  // namespace

bool RankGroup::exchange(bool able, std::span<const uint8_t> own, std::string_view what,
                         std::vector<std::vector<uint8_t>>& all, Diagnostics& diagnostics) {
  std::vector<uint8_t> message{able ? kAble : kUnable};
  if (able) {
    message.insert(message.end(), own.begin(), own.end());
  } else {
    const std::string text = text_of(last_error(diagnostics));
    message.insert(message.end(), text.begin(), text.end());
  }
  Diagnostics said;
  const int64_t entered = ClockMarks::now();
  if (!bootstrap->all_gather(message, what, all, said)) {
    report_broken(able, std::move(said), diagnostics);
    return false;
  }
  records.marks.add(entered, ClockMarks::now());
  if (records.marks.count() == 1) records.digest = digest_of(all);
  std::vector<Unable> unable;
  for (uint32_t r = 0; r < all.size(); ++r) {
    const bool good = !all[r].empty() && all[r][0] == kAble;
    if (!all[r].empty()) all[r].erase(all[r].begin());
    if (!good) add_unable(r, {all[r].begin(), all[r].end()}, unable);
  }
  report_unable(unable, what, diagnostics);
  return able && unable.empty();
}

// Equal texts are said once. What is said where this rank failed, too, is the same on all ranks
// that failed so: printing what all of them say gives one text.
void RankGroup::report_unable(const std::vector<Unable>& unable, std::string_view what,
                              Diagnostics& diagnostics) const {
  for (const auto& [text, ranks] : unable) {
    const bool own = std::find(ranks.begin(), ranks.end(), rank()) != ranks.end();
    if (!own) {
      diagnostics.error("peer-failed", {},
                        fmt::format("{} cannot {}: {}", name_ranks(ranks), what, text));
    } else if (ranks.size() > 1 && last_error(diagnostics) != nullptr) {
      note_at_last_error(fmt::format("so {} cannot {}", name_ranks(ranks), what), diagnostics);
    }
  }
}

// Of what this rank has ended itself, its bootstrap knows only that it has given up.
void RankGroup::report_broken(bool able, Diagnostics said, Diagnostics& diagnostics) const {
  if (failure != nullptr) failure->note_known();
  if (failure != nullptr && failure->is_own()) {
    said = {};
    const std::string code = failure->report(said)->code;
    if (!able && last_error(diagnostics)->code == code) return;  // it was asked before
  }
  // What this rank was not able to do is mostly what came of that: the cause comes first.
  if (!able) std::swap(said, diagnostics);
  for (const Diagnostic& d : said.all()) diagnostics.add(d);
}

void RankGroup::note_call(const std::string& call, Diagnostics& diagnostics) const {
  const Diagnostic* const error = last_error(diagnostics);
  if (call.empty() || error == nullptr || error->code != "call-differs") return;
  note_at_last_error(fmt::format("rank {} makes {}", rank(), call), diagnostics);
}

bool RankGroup::agree(bool able, std::string_view what, Diagnostics& diagnostics) {
  std::vector<std::vector<uint8_t>> all;
  return exchange(able, {}, what, all, diagnostics);
}

void RankGroup::report_hang(const std::set<uint32_t>& awaited, const std::string& why, bool wait) {
  if (!failure->is_open()) return;
  failure->set("hang", why);  // its other blocks end, too
  if (const auto verdict = bootstrap->report_waits({{awaited.begin(), awaited.end()}, why}, wait)) {
    failure->conclude(*verdict);
  }
}

void RankGroup::fail(const std::string& code, const std::string& why) {
  // The bootstrap reports to the others which rank has said it. Without memory for that, the next
  // call of this does.
  if (failure->set(code, fmt::format("rank {}: {}", rank(), why))) others_wait_ = true;
  if (!others_wait_) return;
  bootstrap->fail(why);
  others_wait_ = false;
}

void RankGroup::fail(const Diagnostics& diagnostics) {
  failure->note_known();
  const Diagnostic* error = last_error(diagnostics);
  fail(error == nullptr ? "aborted" : error->code, text_of(error));
}

}  // namespace mscclc
