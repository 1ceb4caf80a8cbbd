#include "runtime/api/communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/precondition.h"
#include "ir/verify/verify.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/device.h"
#include "runtime/core/communicator/call/beside.h"
#include "runtime/core/communicator/executable.h"
#include "runtime/core/communicator/meet.h"
#include "runtime/core/communicator/monitor.h"
#include "runtime/core/communicator/refuse.h"
#include "runtime/support/bytes.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/memory/handle.h"
#include "runtime/support/observe/call_trace.h"
#include "runtime/support/observe/file_name.h"
#include "runtime/support/observe/log.h"
#include "runtime/support/observe/nvtx.h"
#include "runtime/support/settings/settings.h"

namespace mscclc {

struct RegisteredBuffer::State {
  std::shared_ptr<RankGroup> group;
  uint64_t number;
  /// Calls may still use the peers' memory as it is mapped here, and peers this rank's.
  ~State() { group->running.retire(group->buffers.remove(number)); }
};

RankMemory RegisteredBuffer::of_rank(uint32_t rank) const {
  precondition(rank < state_->group->size());
  const RankGroup& group = *state_->group;
  const SharedBuffer& buffer = *group.buffers.find(state_->number);
  if (rank == group.rank()) return {buffer.bytes == 0 ? nullptr : buffer.address, buffer.bytes};
  const Memory* peer = buffer.peers[rank].get();
  if (peer == nullptr) return {};
  return {group.neighbours.links[rank].access ? peer->data() : nullptr, peer->bytes()};
}

namespace {

/// The calls of this rank, for 'mscclc report'. What cannot be written is no reason to fail.
void write_trace(const RankGroup& group) {
  if (group.records.trace_file.empty()) return;
  const CallTrace trace{.rank = group.rank(),
                        .size = group.size(),
                        .group = group.records.digest,
                        .host = host_name(),
                        .process = ::getpid(),
                        .launched = group.records.recorder.count(),
                        .calls = group.records.recorder.calls(),
                        .plans = group.records.recorder.plans(),
                        .marks = group.records.marks.all()};
  const auto name = write_call_trace(trace, group.records.trace_file);
  if (name) {
    log(LogLevel::info, LogArea::init, group.rank(), "its calls are in " + *name);
    return;
  }
  log_always(LogArea::init, group.rank(),
             fmt::format("its calls are not written down ({}): {}",
                         info(Variable::MSCCLC_TRACE).name, name.error().text()));
}

}  // namespace

struct Communicator::State {
  State(std::shared_ptr<RankGroup> of, bool ends_process)
      : group(std::move(of)), monitor(group, ends_process) {}
  ~State() {
    write_trace(*group);
    const auto held = monitor.executables();  // the monitor looks at them when all has ended
    group->running.close();
    monitor.close();
  }

  const std::shared_ptr<RankGroup> group;
  Monitor monitor;
};

Communicator::Communicator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Communicator::~Communicator() = default;

namespace {

/// What the environment and its options say of a communicator.
struct Settings {
  std::chrono::milliseconds timeout{0};
  bool compares_launches = false;
  std::string flight_file, trace_file;
};

bool read_files(const Environment& environment, uint32_t rank, Settings& settings,
                Diagnostics& diagnostics) {
  const auto pattern = environment.text(Variable::MSCCLC_FLIGHT_FILE, diagnostics);
  if (!pattern) return false;
  settings.flight_file = *pattern;
  settings.trace_file = environment.text(Variable::MSCCLC_TRACE, diagnostics).value_or("");
  if (!settings.trace_file.empty() && expand_file_name(settings.trace_file, rank).empty()) {
    return refuse(diagnostics, "bad-variable",
                  fmt::format("{} is {}; allowed is a file's name, with %h, %p, %r and %%",
                              info(Variable::MSCCLC_TRACE).name, quoted(settings.trace_file)));
  }
  if (!expand_file_name(*pattern, rank).empty()) return true;
  return refuse(
      diagnostics, "bad-variable",
      fmt::format("{} is {}; allowed is a file's name, with %h, %p, %r and %%, or '{}'",
                  info(Variable::MSCCLC_FLIGHT_FILE).name, quoted(*pattern), kNoFlightFile));
}

/// False: reported. What could be read is there.
bool read_settings(const CommunicatorOptions& options, uint32_t rank, Settings& settings,
                   Diagnostics& diagnostics) {
  const Environment environment = Environment::of_process();
  const auto timeout =
      options.timeout.count() > 0 ? options.timeout : environment.timeout(diagnostics);
  if (!timeout) return false;
  settings.timeout = *timeout;
  if (!check_settings(environment, diagnostics)) return false;
  const auto check = environment.number(Variable::MSCCLC_CHECK_CALLS, diagnostics);
  settings.compares_launches = check.value_or(0) == 1;
  if (!check || !start_log(environment, diagnostics)) return false;
  Diagnostics warnings;
  warn_of_unknown_once(environment, warnings);
  for (const Diagnostic& d : warnings.all()) log_always(LogArea::env, rank, d.message);
  if (const auto problem = nvtx_problem()) {
    log(LogLevel::warn, LogArea::env, rank, problem->text());
  }
  return read_files(environment, rank, settings, diagnostics);
}

/// The word through which blocks learn of a failure. nullptr: reported, unless an error stands
/// there already.
std::unique_ptr<Memory> make_abort_word(Device* device, const Settings& settings,
                                        Diagnostics& diagnostics) {
  if (device == nullptr) {
    if (!diagnostics.has_errors()) {
      refuse(diagnostics, "no-device", "a communicator needs a device; it is nullptr");
    }
    return nullptr;
  }
  device->set_timeout(settings.timeout);
  return device->allocate_visible(sizeof(uint32_t), "the abort word", diagnostics);
}

/// A rank that was not able to do its part has a group without a failure: reported.
std::shared_ptr<RankGroup> make_group(std::unique_ptr<Bootstrap> bootstrap,
                                      std::shared_ptr<Device> device,
                                      const CommunicatorOptions& options,
                                      Diagnostics& diagnostics) {
  const uint32_t rank = bootstrap->rank(), size = bootstrap->size();
  Settings settings;
  std::shared_ptr<Failure> failure;
  if (read_settings(options, rank, settings, diagnostics)) {
    if (auto word = make_abort_word(device.get(), settings, diagnostics)) {
      log(LogLevel::info, LogArea::bootstrap, rank,
          fmt::format("rank {} of {} has met the others", rank, size));
      failure = std::make_shared<Failure>(std::move(word));
      bootstrap->on_failure(
          [failure](const std::string& why) { failure->set("peer-failed", why); });
    }
  }
  auto group = std::make_shared<RankGroup>(std::move(bootstrap), std::move(device),
                                           settings.timeout, std::move(failure));
  group->compared.at_launch = settings.compares_launches;
  group->records.flight_file = std::move(settings.flight_file);
  group->records.trace_file = std::move(settings.trace_file);
  return group;
}

}  // namespace

std::unique_ptr<Communicator> Communicator::create(std::unique_ptr<Bootstrap> bootstrap,
                                                   std::shared_ptr<Device> device,
                                                   const CommunicatorOptions& options,
                                                   Diagnostics& diagnostics) {
  if (bootstrap == nullptr) {
    refuse(diagnostics, "no-bootstrap", "a communicator needs a bootstrap; it is nullptr");
    return nullptr;
  }
  const auto group = make_group(std::move(bootstrap), std::move(device), options, diagnostics);
  auto state = std::make_unique<State>(group, options.ends_process);
  const bool able = group->failure != nullptr && state->monitor.start(diagnostics);
  if (!meet(*group, able, diagnostics)) return nullptr;
  log(LogLevel::info, LogArea::init, group->rank(),
      fmt::format("communicator of {} ranks on {}; waits end after {} s", group->size(),
                  group->device->name(), std::chrono::duration<double>(group->timeout).count()));
  return std::unique_ptr<Communicator>(new Communicator(std::move(state)));
}

uint32_t Communicator::rank() const { return state_->group->rank(); }
uint32_t Communicator::size() const { return state_->group->size(); }
LinkKind Communicator::worst_link() const { return state_->group->neighbours.worst_link; }
const std::vector<uint32_t>& Communicator::nodes() const {
  return state_->group->neighbours.node_of;
}
bool Communicator::in_one_place() const { return state_->group->neighbours.in_one_place; }
Device& Communicator::device() const { return *state_->group->device; }
Bootstrap& Communicator::bootstrap() const { return *state_->group->bootstrap; }
std::shared_ptr<OneThread> Communicator::one_thread() const {
  return {state_->group, &state_->group->one_thread};
}

namespace {

/// What the ranks of a group say of the plan that they are to load.
enum class Taken : uint8_t { by_all, by_none, no };

/// By none: no rank has a plan, fit or not. Not by all: reported.
Taken take_plan(RankGroup& group, const Program* plan, const LoadOptions& options,
                Diagnostics& diagnostics) {
  if (group.failure->report(diagnostics) != nullptr) return Taken::no;
  group.running.release();
  LoadBeside beside(group, group.records.loads + 1, options.calls_ahead, options.call);
  if (!beside.begin(diagnostics)) return Taken::no;
  bool able = plan != nullptr && verify_structure(*plan, diagnostics);
  if (plan == nullptr && !diagnostics.has_errors()) {
    refuse(diagnostics, "no-plan", "there is no plan; it is nullptr");
  }
  if (able && plan->ranks.size() != group.size()) {
    diagnostics.error("wrong-size", {},
                      fmt::format("the plan is for {} ranks; the communicator has {}",
                                  plan->ranks.size(), group.size()));
    able = false;
  }
  const bool taken = group.agree(able, "take the plan", diagnostics);
  beside.end();
  if (taken) return Taken::by_all;
  group.note_call(options.call, diagnostics);
  Diagnostics ignored;  // there is an error already
  const std::vector<uint8_t> own(plan == nullptr ? 0 : 1);
  std::vector<std::vector<uint8_t>> all;
  const bool left = group.exchange(true, own, "leave the plan", all, ignored);
  return left && std::ranges::all_of(all, &std::vector<uint8_t>::empty) ? Taken::by_none
                                                                        : Taken::no;
}

}  // namespace

bool Communicator::no_rank_loads(const LoadOptions& options, Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->group->one_thread, diagnostics);
  return visit && take_plan(*state_->group, nullptr, options, diagnostics) == Taken::by_none;
}

std::unique_ptr<Executable> Communicator::load(std::shared_ptr<const Program> plan,
                                               const LoadOptions& options,
                                               Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->group->one_thread, diagnostics);
  if (!visit || take_plan(*state_->group, plan.get(), options, diagnostics) != Taken::by_all) {
    return nullptr;
  }
  // All ranks are here, so all calls have been launched that this rank's wait for.
  for (const auto& executable : state_->monitor.executables())
    executable->launcher.take_over_kernels();
  auto made = std::make_shared<Executable::State>(state_->group, std::move(plan), options);
  if (!mscclc::load(*made, diagnostics)) return nullptr;
  state_->monitor.add(made);
  return std::make_unique<Executable>(std::move(made));
}

namespace {

/// Takes them from the front of every rank's message. False: one is cut off.
bool take_overlaps(std::vector<std::vector<uint8_t>>& messages,
                   std::vector<std::vector<BufferOverlap>>& by_rank) {
  for (auto& message : messages) {
    std::span<const uint8_t> rest = message;
    if (!decode(rest, by_rank.emplace_back())) return false;
    message.erase(message.begin(), message.end() - static_cast<ptrdiff_t>(rest.size()));
  }
  return true;
}

}  // namespace

std::unique_ptr<RegisteredBuffer> Communicator::register_buffer(void* address, uint64_t bytes,
                                                                Diagnostics& diagnostics) {
  RankGroup& group = *state_->group;
  const OneThread::Visit visit(group.one_thread, diagnostics);
  if (!visit || group.failure->report(diagnostics) != nullptr) return nullptr;
  group.running.release();
  auto buffer = std::make_shared<SharedBuffer>();
  buffer->address = static_cast<uint8_t*>(address);
  buffer->bytes = bytes;
  std::optional<MemoryHandle> handle;
  std::vector<uint8_t> message;
  group.buffers.append_joined(message);
  if (bytes > 0) {
    buffer->held = group.device->hold_memory(address, bytes, diagnostics);
    if (buffer->held != nullptr) handle = group.device->export_memory(address, bytes, diagnostics);
  }
  encode(group.buffers.overlaps_of(*buffer), message);
  if (handle) encode(*handle, message);
  std::vector<std::vector<uint8_t>> handles;
  if (!group.exchange(bytes == 0 || handle, message, "register a buffer", handles, diagnostics)) {
    return nullptr;
  }
  std::vector<std::vector<BufferOverlap>> overlaps;
  if (!group.buffers.forget_joined(handles) || !take_overlaps(handles, overlaps)) {
    diagnostics.error("bad-message", {}, "a peer's message about its buffers is cut off");
    return nullptr;
  }
  const bool mapped = import_all(group, handles, buffer->peers, diagnostics);
  if (!group.agree(mapped, "map the buffers of the other ranks", diagnostics)) return nullptr;
  const uint64_t number = group.buffers.add(std::move(buffer), overlaps);
  log(LogLevel::info, LogArea::reg, group.rank(),
      fmt::format("buffer {}: {} bytes at {}", number, bytes, fmt::ptr(address)));
  auto state = std::make_shared<RegisteredBuffer::State>();
  state->group = state_->group;
  state->number = number;
  return std::make_unique<RegisteredBuffer>(std::move(state));
}

bool Communicator::check(Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->group->one_thread, diagnostics);
  return visit && state_->monitor.check(diagnostics);
}

// What the watchdog has not come to yet.
bool Communicator::has_failed(Diagnostics& diagnostics) const {
  if (state_->group->failure->waits_end()) state_->monitor.notice();
  return state_->group->failure->report(diagnostics) != nullptr;
}

bool Communicator::synchronize(StreamHandle stream, Diagnostics& diagnostics) {
  RankGroup& group = *state_->group;
  const OneThread::Visit visit(group.one_thread, diagnostics);
  if (!visit) return false;
  const bool done = group.device->synchronize(stream, diagnostics);
  for (const auto& executable : state_->monitor.executables()) {
    if (Proxy* const proxy = executable->lanes.proxy()) proxy->settle();
  }
  if (done) group.records.recorder.ended(reinterpret_cast<uint64_t>(stream));
  const bool fine = state_->monitor.check(diagnostics);
  // A call that has not run here is one that the others wait for.
  if (!done && group.running.is_busy(stream)) group.fail(diagnostics);
  if (done) group.running.ended(stream);  // last: what goes with it may be what check() asks
  return fine && done;
}

void Communicator::abort(const Diagnostics& why) {
  state_->group->fail(why);
  state_->monitor.write_down();
}

void Communicator::abort(const std::string& why) {
  state_->group->failure->note_known();
  state_->group->fail("aborted", why);
  state_->monitor.write_down();
}

}  // namespace mscclc
