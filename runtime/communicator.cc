#include "runtime/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/verify.h"
#include "runtime/environment.h"
#include "runtime/executable.h"
#include "runtime/hang_report.h"

namespace mscclc {

struct RegisteredBuffer::State {
  std::shared_ptr<Group> group;
  uint64_t number;
  ~State() { group->buffers.erase(number); }
};

struct Communicator::State {
  std::shared_ptr<Group> group;
  std::vector<std::weak_ptr<Executable::State>> executables;
};

Communicator::Communicator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Communicator::~Communicator() = default;

namespace {

/// nullopt: reported.
std::optional<std::chrono::milliseconds> timeout_of(const CommunicatorOptions& options,
                                                    Diagnostics& diagnostics) {
  if (options.timeout.count() > 0) return options.timeout;
  const auto seconds = Environment::of_process().number(Variable::MSCCLC_TIMEOUT, diagnostics);
  if (!seconds) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

}  // namespace

std::unique_ptr<Communicator> Communicator::create(std::unique_ptr<Bootstrap> bootstrap,
                                                   std::shared_ptr<Device> device,
                                                   const CommunicatorOptions& options,
                                                   Diagnostics& diagnostics) {
  auto group = std::make_shared<Group>();
  group->bootstrap = std::move(bootstrap);
  group->device = std::move(device);
  const auto timeout = timeout_of(options, diagnostics);
  group->timeout = timeout.value_or(std::chrono::milliseconds(0));
  std::unique_ptr<Memory> word;
  if (group->device == nullptr) {
    if (!diagnostics.has_errors()) diagnostics.error("no-device", {}, "it has no device");
  } else {
    if (timeout) group->device->set_timeout(*timeout);
    word = group->device->allocate_visible(sizeof(uint32_t), "the abort word", diagnostics);
  }
  const bool able = timeout && word != nullptr;
  if (able) {
    group->failure = std::make_shared<Failure>(std::move(word));
    group->bootstrap->on_failure(
        [failure = group->failure](const std::string& why) { failure->set("peer-failed", why); });
  }
  if (!group->agree(able, "create a communicator", diagnostics)) return nullptr;
  auto state = std::make_unique<State>();
  state->group = std::move(group);
  return std::unique_ptr<Communicator>(new Communicator(std::move(state)));
}

uint32_t Communicator::rank() const { return state_->group->rank(); }
uint32_t Communicator::size() const { return state_->group->size(); }
Device& Communicator::device() const { return *state_->group->device; }
Bootstrap& Communicator::bootstrap() const { return *state_->group->bootstrap; }

std::unique_ptr<Executable> Communicator::load(std::shared_ptr<const Program> plan,
                                               const LoadOptions& options,
                                               Diagnostics& diagnostics) {
  Group& group = *state_->group;
  if (group.failure->report(diagnostics) != nullptr) return nullptr;
  bool able = verify_structure(*plan, diagnostics);
  if (able && plan->ranks.size() != group.size()) {
    diagnostics.error("wrong-size", {},
                      fmt::format("the plan is for {} ranks; the communicator has {}",
                                  plan->ranks.size(), group.size()));
    able = false;
  }
  if (!group.agree(able, "take the plan", diagnostics)) return nullptr;
  auto made = std::make_shared<Executable::State>(state_->group, std::move(plan), options);
  if (!made->load(diagnostics)) return nullptr;
  std::erase_if(state_->executables, [](const auto& e) { return e.expired(); });
  state_->executables.push_back(made);
  return std::make_unique<Executable>(std::move(made));
}

std::unique_ptr<RegisteredBuffer> Communicator::register_buffer(void* address, uint64_t bytes,
                                                                Diagnostics& diagnostics) {
  Group& group = *state_->group;
  if (group.failure->report(diagnostics) != nullptr) return nullptr;
  auto buffer = std::make_shared<SharedBuffer>();
  buffer->address = static_cast<uint8_t*>(address);
  buffer->bytes = bytes;
  std::optional<MemoryHandle> handle;
  std::vector<uint8_t> message;
  if (bytes > 0) handle = group.device->export_memory(address, bytes, diagnostics);
  if (handle) encode(*handle, message);
  std::vector<std::vector<uint8_t>> handles;
  if (!group.exchange(bytes == 0 || handle, message, "register a buffer", handles, diagnostics)) {
    return nullptr;
  }
  const bool mapped = import_all(*group.device, handles, group.rank(), buffer->peers, diagnostics);
  if (!group.agree(mapped, "map the buffers of the other ranks", diagnostics)) return nullptr;
  const uint64_t number = group.next_buffer++;
  group.buffers[number] = std::move(buffer);
  auto state = std::make_shared<RegisteredBuffer::State>();
  state->group = state_->group;
  state->number = number;
  return std::make_unique<RegisteredBuffer>(std::move(state));
}

bool Communicator::check(Diagnostics& diagnostics) {
  Group& group = *state_->group;
  std::vector<Note> notes;
  std::vector<uint32_t> awaited;
  size_t waiting = 0;
  for (const auto& weak : state_->executables) {
    const auto executable = weak.lock();
    if (executable == nullptr) continue;
    waiting += describe_faults(*executable->plan, group.rank(),
                               reinterpret_cast<const device::Fault*>(executable->faults->data()),
                               executable->plan->ranks[group.rank()].blocks,
                               executable->connections[group.rank()], notes, awaited);
  }
  // Blocks of executables that are gone have given up too, and what came behind them has not run.
  if (waiting > 0 || group.failure->waits_end()) {
    group.report_hang(
        awaited,
        waiting == 0 && group.failure->happened()
            ? "no thread block waits"
            : fmt::format("{} thread block{} waited {}for what did not come",
                          waiting == 0 ? "a" : std::to_string(waiting), waiting > 1 ? "s" : "",
                          group.failure->happened()
                              ? ""
                              : fmt::format("longer than {} s ",
                                            std::chrono::duration<double>(group.timeout).count())));
  }
  Diagnostic* error = group.failure->report(diagnostics);
  if (error == nullptr) return true;
  error->notes.insert(error->notes.end(), notes.begin(), notes.end());
  return false;
}

bool Communicator::synchronize(StreamHandle stream, Diagnostics& diagnostics) {
  const bool done = state_->group->device->synchronize(stream, diagnostics);
  for (const auto& weak : state_->executables) {
    const auto executable = weak.lock();
    if (executable != nullptr && executable->proxy != nullptr) executable->proxy->settle();
  }
  return check(diagnostics) && done;
}

void Communicator::abort(const std::string& why) { state_->group->fail("aborted", why); }

}  // namespace mscclc
