#include "runtime/devices/cuda/launch/launch_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/support/process/per_process.h"

namespace mscclc::cuda {
namespace {

struct OrdersOfProcess {
  std::mutex mutex;
  std::map<abi::Context, std::weak_ptr<LaunchOrder>> orders;
};

}  // namespace

LaunchOrder::LaunchOrder(SharedContext context, std::unique_ptr<Memory> begun)
    : context_(std::move(context)),
      begun_(std::move(begun)),
      room_(static_cast<uint32_t>(context_->attribute(abi::kMultiprocessorCount))) {}

// By context: processes that a test plays in one have contexts of their own, as have GPUs.
std::shared_ptr<LaunchOrder> LaunchOrder::of(const SharedContext& context, OwnStream& stream,
                                             Diagnostics& diagnostics) {
  auto& here = process_wide<OrdersOfProcess>();
  const std::lock_guard lock(here.mutex);
  std::weak_ptr<LaunchOrder>& known = here.orders[context->handle()];
  if (auto order = known.lock()) return order;
  auto begun =
      allocate_unshared(context, stream, sizeof(uint32_t), "a count of thread blocks", diagnostics);
  if (begun == nullptr) return nullptr;
  std::shared_ptr<LaunchOrder> made(new LaunchOrder(context, std::move(begun)));
  known = made;
  return made;
}

// Streams of green contexts have some of the GPU's multiprocessors. Default streams have all.
bool LaunchOrder::find_room(OrderedLaunch& turn, Diagnostics& diagnostics) {
  const Driver& driver = context_->driver();
  if (!driver.has_green_contexts() || is_default(turn.stream)) return true;
  {
    const std::lock_guard lock(mutex_);
    if (asked_stream_ == turn.stream_id && asked_room_ != 0) {
      turn.room = asked_room_;
      return true;
    }
  }
  abi::GreenContext green = nullptr;
  abi::DeviceResource has = {};
  const auto attempt = [] { return "find the multiprocessors of a stream"; };
  if (!context_->ok(driver.StreamGetGreenCtx(turn.stream, &green), attempt, diagnostics)) {
    return false;
  }
  if (green != nullptr) {
    if (!context_->ok(driver.GreenCtxGetDevResource(green, &has, abi::kMultiprocessors), attempt,
                      diagnostics)) {
      return false;
    }
    turn.room = std::min(room_, has.multiprocessors);
  }
  const std::lock_guard lock(mutex_);
  asked_stream_ = turn.stream_id;
  asked_room_ = turn.room;
  return true;
}

// What the whole GPU holds is known since the call was bound.
bool LaunchOrder::fits(const device::LaunchPlan& plan, const OrderedLaunch& turn,
                       Diagnostics& diagnostics) const {
  const uint64_t most = uint64_t{plan.most_blocks} / plan.ranks_here * turn.room / room_;
  if (turn.room == room_ || plan.blocks <= most) return true;
  diagnostics
      .error(
          "too-many-blocks", {},
          fmt::format("the plan has {} thread blocks; the stream belongs to a green context with "
                      "{} of the {} multiprocessors of cuda:{} ({}), which holds {} at once",
                      plan.blocks, turn.room, room_, context_->ordinal(), context_->model(), most))
      .notes.push_back({"compile the plan with fewer blocks, instances or threads"});
  return false;
}

// Lossy: edges of the user's own have data, and so come from no launch of ours.
bool LaunchOrder::find_ahead(abi::Stream stream, Nodes& ahead, Diagnostics& diagnostics) const {
  int status = abi::kCaptureStatusNone;
  uint64_t id = 0;
  const abi::GraphNode* nodes = nullptr;
  size_t count = 0;
  const abi::Result known =
      context_->driver().StreamGetCaptureInfo(stream, &status, &id, nullptr, &nodes, &count);
  if (known == abi::kLossyQuery) return true;
  if (!context_->ok(
          known, [] { return "find what a captured call comes after"; }, diagnostics)) {
    return false;
  }
  ahead.assign(nodes, nodes + count);
  return true;
}

// A stream is known by its id, as handles come again. One that is captured must not be asked for
// it: that would end the capture. But it is there as long as that, and its handle will do.
bool LaunchOrder::find(abi::Stream stream, OrderedLaunch& turn, Diagnostics& diagnostics) {
  const Driver& driver = context_->driver();
  turn.stream = stream;
  turn.room = room_;
  if (turn.stream_id != 0) return find_room(turn, diagnostics);
  int status = abi::kCaptureStatusNone;
  if (!context_->ok(
          driver.StreamGetCaptureInfo(stream, &status, &turn.capture, nullptr, nullptr, nullptr),
          [] { return "ask whether a stream is captured"; }, diagnostics)) {
    return false;
  }
  if (status != abi::kCaptureStatusNone) {
    turn.stream_id = reinterpret_cast<uintptr_t>(stream);
    return find_ahead(stream, turn.ahead, diagnostics);
  }
  turn.capture = 0;
  unsigned long long id = 0;
  if (!context_->ok(
          driver.StreamGetId(stream, &id), [] { return "identify a stream"; }, diagnostics)) {
    return false;
  }
  turn.stream_id = id;
  return find_room(turn, diagnostics);
}

// Does the launch come after the last one of its stream, and nothing else?
bool LaunchOrder::follows_own(const Capture& capture, const OrderedLaunch& turn) {
  const auto last = capture.last.find(turn.stream_id);
  return last != capture.last.end() && !turn.ahead.empty() && last->second == turn.ahead;
}

// After others a launch does not begin early: what it waits for then comes before it.
bool LaunchOrder::take_turn(abi::Stream stream, EarlyLaunch early, device::LaunchPlan& plan,
                            OrderedLaunch& turn, Diagnostics& diagnostics) {
  if (!find(stream, turn, diagnostics) || !fits(plan, turn, diagnostics)) return false;
  turn.blocks = plan.blocks;
  const bool captured = turn.capture != 0;
  // Ranks that share the GPU depend on one another's room.
  const bool would_free = early.works && plan.early && is_small(plan) && plan.ranks_here == 1;
  LaunchEpochs::InEpochs place;
  uint32_t count = 0;
  Nodes before;
  bool allowed = early.works;
  {
    const std::lock_guard lock(mutex_);
    Capture* const into = captured ? &capture(turn.capture) : nullptr;
    if (captured) {
      allowed = early.works_in_captures &&
                (early.after_any || plan.previous_allows_early || follows_own(*into, turn));
    }
    LaunchEpochs& epochs = captured ? into->epochs : epochs_;
    place = epochs.add({turn.stream_id, plan.blocks, turn.room, would_free, plan.any_order});
    if (place.opens && captured) {
      into->before.clear();
      for (const auto& [id, nodes] : std::exchange(into->last, {})) {
        into->before.insert(into->before.end(), nodes.begin(), nodes.end());
      }
    } else if (place.opens) {
      epoch_begins_ = launched_;
    }
    if (captured) before = into->before;
    count = epoch_begins_;
  }
  plan.frees_next = place.frees;
  plan.early = plan.early && allowed && !place.waits;
  plan.begun = captured ? nullptr : reinterpret_cast<uint32_t*>(begun_->data());
  if (!place.waits) return true;
  // An edge waits for an end, which calls of ranks that share the GPU would not reach alone.
  const bool ordered = captured
                           ? plan.ranks_here > 1 || add_edges(turn, std::move(before), diagnostics)
                           : await_begun(turn, count, diagnostics);
  if (ordered) return true;
  const std::lock_guard lock(mutex_);
  (captured ? capture(turn.capture).epochs : epochs_).forget(turn.stream_id);
  return false;
}

bool LaunchOrder::await_begun(const OrderedLaunch& turn, uint32_t count,
                              Diagnostics& diagnostics) const {
  return context_->ok(
      context_->driver().StreamWaitValue32(turn.stream, address_of(begun_->data()), count,
                                           abi::kWaitValueAtLeast),
      [] { return "make a stream wait for calls of other streams to begin"; }, diagnostics);
}

// Kernels that the stream already comes after need no second edge.
bool LaunchOrder::add_edges(const OrderedLaunch& turn, Nodes before,
                            Diagnostics& diagnostics) const {
  std::erase_if(before, [&](abi::GraphNode node) {
    return std::find(turn.ahead.begin(), turn.ahead.end(), node) != turn.ahead.end();
  });
  return before.empty() ||
         context_->ok(
             context_->driver().StreamUpdateCaptureDependencies(
                 turn.stream, before.data(), before.size(), abi::kAddDependencies),
             [] { return "order a captured call after those of other streams"; }, diagnostics);
}

bool LaunchOrder::launched(const OrderedLaunch& turn, Diagnostics& diagnostics) {
  if (turn.capture == 0) {
    const std::lock_guard lock(mutex_);
    launched_ += turn.blocks;
    return true;
  }
  Nodes made;
  if (!find_ahead(turn.stream, made, diagnostics)) return false;
  const std::lock_guard lock(mutex_);
  capture(turn.capture).last[turn.stream_id] = std::move(made);
  return true;
}

LaunchOrder::Capture& LaunchOrder::capture(uint64_t id) {
  if (captures_.count(id) == 0 && captures_.size() == kMaxCaptures) {
    captures_.erase(captures_.begin());  // ids grow: it is the oldest, and has ended long ago
  }
  return captures_[id];
}

}  // namespace mscclc::cuda
