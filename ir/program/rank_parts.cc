#include "ir/program/rank_parts.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>
#include <thread>

namespace mscclc {
namespace {

constexpr uint64_t kManyOps = 100'000;  // some ms of work: a thread costs 50 us to start
constexpr uint32_t kMaxThreads = 8;

uint64_t count_ops(const Program& program, RankRange all) {
  uint64_t ops = 0;
  for (uint32_t r = all.begin; r < all.end; ++r) ops += program.ranks[r].ops.size();
  return ops;
}

/// How many cores this process may use.
uint32_t cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    return static_cast<uint32_t>(CPU_COUNT(&allowed));
  return std::max(std::thread::hardware_concurrency(), 1u);
}

/// A thread, or nothing if the system gives none.
std::thread try_thread(const std::function<void(uint32_t)>& work, uint32_t i) {
  try {
    return std::thread([&work, i] { work(i); });
  } catch (const std::system_error&) {
    return {};
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace

uint32_t thread_count(const Program& program, uint32_t wanted) {
  return thread_count(count_ops(program, {0, static_cast<uint32_t>(program.ranks.size())}), wanted);
}

uint32_t thread_count(uint64_t ops, uint32_t wanted) {
  if (wanted != 0) return wanted;
  if (ops < kManyOps) return 1;
  return std::min(cores(), kMaxThreads);
}

std::vector<RankRange> cut_ranks(const Program& program, RankRange all, uint32_t parts) {
  std::vector<RankRange> cut;
  if (all.begin == all.end) return cut;
  const uint64_t ops = count_ops(program, all);
  uint32_t begin = all.begin;
  uint64_t done = 0;
  for (uint32_t r = all.begin; r < all.end; ++r) {
    done += program.ranks[r].ops.size();
    const bool full = done * parts >= ops * (cut.size() + 1) && cut.size() + 1 < parts;
    if (!full && r + 1 < all.end) continue;
    cut.push_back({begin, r + 1});
    begin = r + 1;
  }
  return cut;
}

void run_threads(uint32_t count, const std::function<void(uint32_t)>& work) {
  std::vector<std::exception_ptr> thrown(count);
  const std::function<void(uint32_t)> caught = [&](uint32_t i) {
    try {
      work(i);
    } catch (...) {
      thrown[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads(count == 0 ? 0 : count - 1);
  if (count > 1 && cores() > 1) {
    for (uint32_t i = 1; i < count; ++i) threads[i - 1] = try_thread(caught, i);
  }
  if (count > 0) caught(0);
  for (uint32_t i = 1; i < count; ++i) {
    if (threads[i - 1].joinable()) {
      threads[i - 1].join();
    } else {
      caught(i);
    }
  }
  for (const std::exception_ptr& e : thrown) {
    if (e) std::rethrow_exception(e);
  }
}

}  // namespace mscclc
