#include "tests/fakes/cuda/fake_core.h"

#include <fmt/format.h>

namespace mscclc::cuda {
namespace {

// What a thread has: the process that it plays, its stacks of contexts and its capture modes there.
struct ThreadState {
  int process = 0;
  std::map<int, std::vector<abi::Context>> contexts;
  std::map<int, int> capture_mode;
};
alignas(64) thread_local ThreadState thread_state;  // aligned: see tests/fakes/nccl/fake_nccl.cc

}  // namespace

void FakeCore::enter(int process) { thread_state.process = process; }

int FakeCore::entered() { return thread_state.process; }

std::vector<std::string> FakeCore::misuses() const {
  const std::lock_guard lock(mutex_);
  return misuses_;
}

abi::Result FakeCore::misuse(const std::string& what, abi::Result result) {
  misuses_.push_back(fmt::format("process {}: {}", entered(), what));
  return result;
}

FakeCore::Process& FakeCore::process() {
  std::unique_ptr<Process>& process = processes_[entered()];
  if (process == nullptr) {
    process = std::make_unique<Process>();
    process->id = entered();
  }
  return *process;
}

int FakeCore::current_device() {
  const std::vector<abi::Context>& stack = contexts();
  if (stack.empty()) return -1;
  for (const auto& [device, count] : process().contexts) {
    if (process().context(device) == stack.back()) return device;
  }
  return -1;
}

FakeCore::Contexts& FakeCore::contexts_of(int process) { return thread_state.contexts[process]; }

int& FakeCore::capture_mode_of(int process) { return thread_state.capture_mode[process]; }

void FakeCore::new_thread() { thread_state = {}; }

}  // namespace mscclc::cuda
