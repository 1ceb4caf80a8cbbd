#include "runtime/api/in_process.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <optional>

#include "runtime/bootstrap/wait_graph.h"
#include "runtime/support/fixed_times.h"

namespace mscclc {
namespace {

using Bytes = std::vector<uint8_t>;

/// What the ranks share. A round is one exchange; rank r is in round `rounds[r]`.
struct Meeting {
  Meeting(uint32_t ranks, std::chrono::milliseconds timeout)
      : timeout(timeout), given(ranks), steps(ranks), come(ranks), left(ranks), listeners(ranks) {}

  const std::chrono::milliseconds timeout;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Bytes> given;
  std::vector<std::string> steps;
  std::vector<bool> come, left;
  std::vector<std::vector<std::function<void(const std::string&)>>> listeners;
  uint64_t round = 0;
  uint32_t arrived = 0;
  /// What the last complete round gave: no rank begins to fill the round after the next before all
  /// have it.
  std::shared_ptr<const std::vector<Bytes>> result;
  std::string mismatch;  ///< of the last complete round
  std::string failure;   ///< why a rank has given up
  /// Since blocks of a rank have given up, and until when the others may say for which ranks they
  /// wait.
  std::optional<WaitGraph> graph;
  std::vector<bool> reported;
  std::chrono::steady_clock::time_point graph_deadline;

  std::vector<std::function<void(const std::string&)>> take_listeners(uint32_t but);
  void judge();
};

std::vector<std::function<void(const std::string&)>> Meeting::take_listeners(uint32_t but) {
  std::vector<std::function<void(const std::string&)>> all;
  for (uint32_t r = 0; r < listeners.size(); ++r) {
    if (r == but) continue;
    for (auto& fn : listeners[r]) all.push_back(std::move(fn));
    listeners[r].clear();
  }
  return all;
}

/// Ends with a verdict once all ranks have said what they wait for, or are elsewhere.
void Meeting::judge() {
  std::vector<std::string> names;
  for (uint32_t r = 0; r < come.size(); ++r) {
    if (come[r]) graph->elsewhere(r, fmt::format("is at '{}'", steps[r]));
    if (left[r]) graph->elsewhere(r, "has left");
    names.push_back(fmt::format("rank {}", r));
  }
  if (!graph->complete() && std::chrono::steady_clock::now() < graph_deadline) return;
  failure = graph->verdict(names);
  changed.notify_all();
}

class InProcess final : public Bootstrap {
 public:
  InProcess(std::shared_ptr<Meeting> meeting, uint32_t rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  ~InProcess() override {
    const std::lock_guard lock(meeting_->mutex);
    meeting_->left[rank_] = true;
    if (meeting_->graph && meeting_->failure.empty()) meeting_->judge();
    meeting_->listeners[rank_].clear();
    meeting_->changed.notify_all();
  }

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return static_cast<uint32_t>(meeting_->given.size()); }
  bool all_gather(std::span<const uint8_t> own, std::string_view what, std::vector<Bytes>& all,
                  Diagnostics& diagnostics) override;
  void on_failure(std::function<void(const std::string& why)> fn) override;
  void fail(const std::string& why) override;
  std::optional<std::string> report_waits(const WaitReport& own, bool wait) override;

 private:
  void complete(Meeting& m);
  void report_missing(const Meeting& m, std::string_view what, Diagnostics& diagnostics) const;

  const std::shared_ptr<Meeting> meeting_;
  const uint32_t rank_;
};

bool report(Diagnostics& diagnostics, const char* code, const std::string& text) {
  diagnostics.error(code, {}, text);
  return false;
}

// The last to come hands out what all have given.
void InProcess::complete(Meeting& m) {
  m.mismatch.clear();
  for (uint32_t r = 1; r < m.steps.size(); ++r) {
    if (m.steps[r] == m.steps[0] || !m.mismatch.empty()) continue;
    m.mismatch = fmt::format("ranks make different calls: rank {} is at '{}', rank 0 at '{}'", r,
                             m.steps[r], m.steps[0]);
  }
  m.result = std::make_shared<const std::vector<Bytes>>(m.given);
  m.come.assign(m.come.size(), false);
  m.arrived = 0;
  ++m.round;
  m.changed.notify_all();
}

void InProcess::report_missing(const Meeting& m, std::string_view what,
                               Diagnostics& diagnostics) const {
  std::string missing;
  for (uint32_t r = 0; r < m.come.size(); ++r) {
    if (!m.come[r]) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", r);
  }
  report(diagnostics, "bootstrap-timeout",
         fmt::format("rank {} did not reach '{}' within {} ms", missing, what, m.timeout.count()));
}

bool InProcess::all_gather(std::span<const uint8_t> own, std::string_view what,
                           std::vector<Bytes>& all, Diagnostics& diagnostics) {
  if (own.size() > kMaxBytes) {
    return report(diagnostics, "message-too-long",
                  fmt::format("{} bytes are too many for an exchange ('{}')", own.size(), what));
  }
  Meeting& m = *meeting_;
  std::unique_lock lock(m.mutex);
  if (!m.failure.empty()) return report(diagnostics, "rank-died", m.failure);
  const uint64_t round = m.round;
  m.given[rank_].assign(own.begin(), own.end());
  m.steps[rank_] = what;
  m.come[rank_] = true;
  if (++m.arrived == m.given.size()) complete(m);
  if (m.graph) m.judge();
  const auto somebody_left = [&] {
    for (uint32_t r = 0; r < m.left.size(); ++r) {
      if (m.left[r] && !m.come[r]) return true;
    }
    return false;
  };
  m.changed.wait_for(lock, m.timeout,
                     [&] { return m.round != round || !m.failure.empty() || somebody_left(); });
  if (m.round == round) {
    if (!m.failure.empty()) return report(diagnostics, "rank-died", m.failure);
    report_missing(m, what, diagnostics);
    m.come[rank_] = false;
    --m.arrived;
    return false;
  }
  if (!m.mismatch.empty()) return report(diagnostics, "call-differs", m.mismatch);
  all = *m.result;
  return true;
}

void InProcess::on_failure(std::function<void(const std::string& why)> fn) {
  std::string failure;
  {
    const std::lock_guard lock(meeting_->mutex);
    failure = meeting_->failure;
    if (failure.empty()) meeting_->listeners[rank_].push_back(fn);
  }
  if (!failure.empty()) fn(failure);
}

void InProcess::fail(const std::string& why) {
  std::vector<std::function<void(const std::string&)>> listeners;
  std::string failure;
  {
    const std::lock_guard lock(meeting_->mutex);
    if (!meeting_->failure.empty()) return;
    meeting_->failure = failure = fmt::format("rank {} has given up: {}", rank_, why);
    listeners = meeting_->take_listeners(rank_);
    meeting_->changed.notify_all();
  }
  for (const auto& fn : listeners) fn(failure);
}

// Ranks are threads of one process, so all of them live; how long that may take to come to a point
// where they say so is all that is not known.
std::optional<std::string> InProcess::report_waits(const WaitReport& own, bool wait) {
  Meeting& m = *meeting_;
  std::unique_lock lock(m.mutex);
  if (!m.failure.empty()) return m.failure;
  if (!m.graph) {
    m.graph.emplace(size());
    m.reported.assign(size(), false);
    for (uint32_t r = 0; r < size(); ++r) m.graph->answer(r);
    m.graph_deadline = std::chrono::steady_clock::now() + kReportTime;
    const auto listeners = m.take_listeners(rank_);
    lock.unlock();
    for (const auto& fn : listeners) fn("blocks of another rank waited too long");
    lock.lock();
  }
  if (!m.reported[rank_]) m.graph->report(rank_, own);
  m.reported[rank_] = true;
  if (m.failure.empty()) m.judge();
  while (wait && m.failure.empty()) {
    m.changed.wait_until(lock, m.graph_deadline);
    if (m.failure.empty()) m.judge();
  }
  return m.failure.empty() ? std::nullopt : std::optional(m.failure);
}

}  // namespace

std::vector<std::unique_ptr<Bootstrap>> make_in_process_bootstraps(
    uint32_t ranks, std::chrono::milliseconds timeout) {
  const auto meeting = std::make_shared<Meeting>(ranks, timeout);
  std::vector<std::unique_ptr<Bootstrap>> made;
  for (uint32_t r = 0; r < ranks; ++r) made.push_back(std::make_unique<InProcess>(meeting, r));
  return made;
}

}  // namespace mscclc
