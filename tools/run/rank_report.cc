#include "tools/run/rank_report.h"

#include <algorithm>
#include <string>

#include "executor/stamps.h"
#include "runtime/support/bytes.h"

namespace mscclc {
namespace {

void put_text(ByteWriter& to, std::string_view text) {
  to.number(static_cast<uint32_t>(text.size())).text(text);
}

std::string take_text(ByteReader& from) {
  const auto length = from.number<uint32_t>();
  return std::string(from.text(length));
}

void put_span(ByteWriter& to, const Span& span) {
  to.number(span.file).number(span.begin).number(span.end).number(span.line).number(span.column);
}

Span take_span(ByteReader& from) {
  Span span;
  for (uint32_t* field : {&span.file, &span.begin, &span.end, &span.line, &span.column}) {
    *field = from.number<uint32_t>();
  }
  return span;
}

void put_diagnostic(ByteWriter& to, const Diagnostic& d) {
  to.number(static_cast<uint8_t>(d.severity));
  put_span(to, d.span);
  for (const std::string* text : {&d.code, &d.message, &d.file, &d.path}) put_text(to, *text);
  to.number(static_cast<uint32_t>(d.notes.size()));
  for (const Note& note : d.notes) {
    put_text(to, note.text);
    put_span(to, note.span);
    put_text(to, note.file);
  }
}

Diagnostic take_diagnostic(ByteReader& from) {
  Diagnostic d;
  d.severity = from.number<uint8_t>() == 0 ? Severity::error : Severity::warning;
  d.span = take_span(from);
  for (std::string* text : {&d.code, &d.message, &d.file, &d.path}) *text = take_text(from);
  const auto notes = from.number<uint32_t>();
  for (uint32_t i = 0; i < notes && from.good(); ++i) {
    Note note{take_text(from)};
    note.span = take_span(from);
    note.file = take_text(from);
    d.notes.push_back(std::move(note));
  }
  return d;
}

void put_times(ByteWriter& to, const std::vector<int64_t>& times) {
  to.number(static_cast<uint32_t>(times.size()));
  for (const int64_t t : times) to.number(t);
}

std::vector<int64_t> take_times(ByteReader& from) {
  const auto count = from.number<uint32_t>();
  std::vector<int64_t> times;
  for (uint32_t i = 0; i < count && from.good(); ++i) times.push_back(from.number<int64_t>());
  return times;
}

/// Of each row what it holds: rows are as long as the longest needs them.
void put_stamps(ByteWriter& to, const RankResult& result) {
  const uint32_t words = result.stamp_words;
  const size_t rows = words == 0 ? 0 : result.stamps.size() / words;
  to.number(words).number(static_cast<uint32_t>(rows));
  for (size_t r = 0; r < rows; ++r) {
    const uint64_t* row = result.stamps.data() + r * words;
    const uint64_t held = std::min<uint64_t>(row[device::kStampsDue], words - device::kStampHead);
    for (uint64_t i = 0; i < device::kStampHead + held; ++i) to.number(row[i]);
  }
}

/// False: they are none.
bool take_stamps(ByteReader& from, RankResult& result) {
  constexpr uint64_t kMaxWords = uint64_t{1} << 24;
  const auto words = from.number<uint32_t>(), rows = from.number<uint32_t>();
  if (uint64_t{words} * rows > kMaxWords || (rows > 0 && words < device::kStampHead)) return false;
  result.stamp_words = words;
  result.stamps.resize(size_t{words} * rows);
  for (size_t r = 0; r < rows && from.good(); ++r) {
    uint64_t* row = result.stamps.data() + r * words;
    for (uint32_t i = 0; i < device::kStampHead; ++i) row[i] = from.number<uint64_t>();
    const uint64_t held = std::min<uint64_t>(row[device::kStampsDue], words - device::kStampHead);
    for (uint64_t i = 0; i < held; ++i) row[device::kStampHead + i] = from.number<uint64_t>();
  }
  return true;
}

/// How bad it is: a hang hides all else, a wrong element says more than a refusal.
int badness(RunStatus status) {
  switch (status) {
    case RunStatus::right:
      return 0;
    case RunStatus::refused:
      return 1;
    case RunStatus::wrong:
      return 2;
    case RunStatus::hung:
      return 3;
  }
  return 3;
}

}  // namespace

std::vector<uint8_t> encode(const RankReport& report) {
  std::vector<uint8_t> bytes;
  ByteWriter to(bytes);
  const RunResult& run = report.result.run;
  to.number(static_cast<uint8_t>(run.status)).number(run.wrong).number(run.seconds);
  put_times(to, report.result.entered);
  put_times(to, report.result.left);
  put_stamps(to, report.result);
  to.number(static_cast<uint32_t>(report.diagnostics.size()));
  for (const Diagnostic& d : report.diagnostics) put_diagnostic(to, d);
  return bytes;
}

bool decode(std::span<const uint8_t> bytes, RankReport& report) {
  ByteReader from(bytes);
  RunResult& run = report.result.run;
  const auto status = from.number<uint8_t>();
  if (status > static_cast<uint8_t>(RunStatus::refused)) return false;
  run.status = static_cast<RunStatus>(status);
  run.wrong = from.number<uint64_t>();
  run.seconds = from.number<double>();
  report.result.entered = take_times(from);
  report.result.left = take_times(from);
  if (!take_stamps(from, report.result)) return false;
  const auto count = from.number<uint32_t>();
  for (uint32_t i = 0; i < count && from.good(); ++i) {
    report.diagnostics.push_back(take_diagnostic(from));
  }
  return from.ended();
}

RunResult merge(std::vector<RankReport> reports, const Contract& contract,
                Diagnostics& diagnostics) {
  RunResult all{.status = RunStatus::right};
  std::vector<RankResult> results;
  for (RankReport& report : reports) {
    const RunResult& run = report.result.run;
    if (badness(run.status) > badness(all.status)) all.status = run.status;
    all.wrong += run.wrong;
    all.seconds = std::max(all.seconds, run.seconds);
    for (Diagnostic& d : report.diagnostics) diagnostics.add(std::move(d));
    results.push_back(std::move(report.result));
  }
  if (contract.kind == CollectiveKind::barrier && all.status == RunStatus::right &&
      !kept_together(results)) {
    diagnostics.error("left-early", {}, "a rank leaves the barrier before all are in");
    all.status = RunStatus::wrong;
    ++all.wrong;
  }
  return all;
}

}  // namespace mscclc
