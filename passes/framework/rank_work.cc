#include "passes/framework/rank_work.h"

#include <deque>

namespace mscclc {
namespace {

bool work_alone(Program& program, PassContext& context, RankRange all,
                const std::function<bool(RankWork&)>& work) {
  Additions additions(program, false);
  RankWork whole{all, additions, context};
  return work(whole);
}

/// What the threads have reported and counted, up to the first that failed.
bool put_together(std::deque<Diagnostics>& reports, std::deque<PassRecord>& records,
                  const std::vector<char>& done, PassContext& context) {
  for (size_t i = 0; i < done.size(); ++i) {
    for (const Diagnostic& d : reports[i].all()) context.diagnostics.add(d);
    for (const auto& [what, by] : records[i].counts) context.count(what, by);
    if (!done[i]) return false;
  }
  return true;
}

}  // namespace

bool work_on_ranks(Program& program, PassContext& context, RankRange all,
                   const std::function<bool(RankWork&)>& work) {
  const uint32_t threads = thread_count(program, context.threads);
  if (threads == 1) return work_alone(program, context, all, work);
  const std::vector<RankRange> parts = cut_ranks(program, all, threads);
  std::deque<Diagnostics> reports(parts.size());
  std::deque<PassRecord> records(parts.size());
  std::vector<char> done(parts.size(), false);
  program.open_to_threads();
  run_threads(static_cast<uint32_t>(parts.size()), [&](uint32_t i) {
    Additions additions(program, true);
    PassContext own = context.with(reports[i], context.record == nullptr ? nullptr : &records[i]);
    RankWork part{parts[i], additions, own};
    done[i] = work(part);
  });
  return put_together(reports, records, done, context);
}

bool work_on_ranks(Program& program, PassContext& context,
                   const std::function<bool(RankWork&)>& work) {
  return work_on_ranks(program, context, {0, static_cast<uint32_t>(program.ranks.size())}, work);
}

}  // namespace mscclc
