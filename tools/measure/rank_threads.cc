#include "tools/measure/rank_threads.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "runtime/api/in_process.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {

void add_first(const std::vector<Diagnostics>& problems, Diagnostics& diagnostics) {
  for (const Diagnostics& own : problems) {
    if (diagnostics.has_errors()) return;
    for (const Diagnostic& d : own.all()) diagnostics.add(d);
  }
}

struct RankThreads::State {
  explicit State(uint32_t ranks) : problems(ranks) {}

  void be_rank(uint32_t rank, const RankDevices& devices, std::unique_ptr<Bootstrap> bootstrap,
               std::chrono::milliseconds timeout);
  void take_work(Communicator& communicator);
  void one_is_done() {
    const std::lock_guard lock(mutex);
    ++done;
    changed.notify_all();
  }
  /// Waits until as many ranks as there are have said so.
  void wait_for_all(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [&] { return done == threads.size(); });
  }

  std::vector<Diagnostics> problems;  ///< by rank, of the beginning
  std::string device;
  LinkKind links = LinkKind::own;
  uint32_t multiprocessors = 0;

  std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  const std::function<void(Communicator&)>* work = nullptr;
  uint64_t pieces = 0;  ///< of work so far, the one at hand among them
  size_t done = 0;      ///< ranks that have begun, or have done the work at hand
  bool over = false;
  std::vector<std::thread> threads;
};

void RankThreads::State::be_rank(uint32_t rank, const RankDevices& devices,
                                 std::unique_ptr<Bootstrap> bootstrap,
                                 std::chrono::milliseconds timeout) {
  Diagnostics& diagnostics = problems[rank];
  auto opened = open_rank_device(devices, rank, rank, diagnostics);
  if (rank == 0 && opened != nullptr) {
    device = opened->name();
    multiprocessors = opened->multiprocessors();
  }
  // For what calls CUDA itself in this thread: NCCL, and captures.
  if (opened != nullptr && !opened->bind_thread(diagnostics)) opened.reset();
  const auto communicator = Communicator::create(std::move(bootstrap), std::move(opened),
                                                 {.timeout = timeout}, diagnostics);
  if (communicator != nullptr && rank == 0) links = communicator->worst_link();
  one_is_done();
  if (communicator != nullptr) take_work(*communicator);
}

void RankThreads::State::take_work(Communicator& communicator) {
  for (uint64_t seen = 0;;) {
    const std::function<void(Communicator&)>* next = nullptr;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return over || pieces > seen; });
      if (over) return;
      seen = pieces;
      next = work;
    }
    (*next)(communicator);
    one_is_done();
  }
}

RankThreads::RankThreads(std::unique_ptr<State> state) : state_(std::move(state)) {}

RankThreads::~RankThreads() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
    state_->changed.notify_all();
  }
  for (std::thread& thread : state_->threads) thread.join();
}

std::unique_ptr<RankThreads> RankThreads::start(uint32_t ranks, const RankDevices& devices,
                                                Diagnostics& diagnostics) {
  const auto timeout = Environment::of_process().timeout(diagnostics);
  if (!timeout) return nullptr;
  auto bootstraps = make_in_process_bootstraps(ranks, *timeout);
  std::unique_ptr<RankThreads> all(new RankThreads(std::make_unique<State>(ranks)));
  State& state = *all->state_;
  for (uint32_t r = 0; r < ranks; ++r) {
    std::thread thread =
        quiet_thread("mscclc-rank",
                     [&state, r, devices, timeout, bootstrap = std::move(bootstraps[r])]() mutable {
                       state.be_rank(r, devices, std::move(bootstrap), *timeout);
                     });
    if (!has_started(thread, fmt::format("rank {}", r), diagnostics)) {
      for (auto& absent : bootstraps) absent.reset();
      return nullptr;
    }
    state.threads.push_back(std::move(thread));
  }
  std::unique_lock lock(state.mutex);
  state.wait_for_all(lock);
  lock.unlock();
  add_first(state.problems, diagnostics);
  return diagnostics.has_errors() ? nullptr : std::move(all);
}

void RankThreads::run(const std::function<void(Communicator&)>& work) {
  std::unique_lock lock(state_->mutex);
  state_->work = &work;
  state_->done = 0;
  ++state_->pieces;
  state_->changed.notify_all();
  state_->wait_for_all(lock);
}

uint32_t RankThreads::ranks() const { return static_cast<uint32_t>(state_->threads.size()); }
LinkKind RankThreads::links() const { return state_->links; }
uint32_t RankThreads::multiprocessors() const { return state_->multiprocessors; }
const std::string& RankThreads::device() const { return state_->device; }

}  // namespace mscclc
