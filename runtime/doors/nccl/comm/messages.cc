#include "runtime/doors/nccl/comm/messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/api/bootstrap.h"
#include "runtime/doors/nccl/backends/device.h"
#include "runtime/doors/nccl/comm/comm.h"
#include "runtime/doors/nccl/comm/make.h"
#include "runtime/doors/nccl/comm/meet.h"

namespace mscclc::nccl {
namespace {

/// Reports errors of a route, which counts its two ranks from 0.
void report_errors(const Diagnostics& errors, uint32_t from, uint32_t to,
                   Diagnostics& diagnostics) {
  for (Diagnostic error : errors.all()) {
    error.message = fmt::format("messages from rank {} (rank 0 here) to rank {} (rank 1 here): {}",
                                from, to, error.message);
    diagnostics.add(std::move(error));
  }
}

std::unique_ptr<PeerRoute> make_route(const Comm& comm, uint32_t from, uint32_t to,
                                      Diagnostics& diagnostics) {
  auto route = std::make_unique<PeerRoute>();
  route->from = from;
  route->to = to;
  route->device = open_device(comm.ordinal, diagnostics);
  if (route->device == nullptr) return nullptr;
  std::unique_ptr<Bootstrap> bootstrap = meet_for_messages(comm, from, to, diagnostics);
  if (bootstrap == nullptr) return nullptr;
  route->communicator = Communicator::create(std::move(bootstrap), route->device, {}, diagnostics);
  if (route->communicator == nullptr) return nullptr;
  // Blocks of a message wait for the peer, which may wait for another message of this rank's.
  const uint64_t routes = 2 * (uint64_t{comm.ranks} - 1);
  route->plans = make_plan_calls(
      *route->communicator, {.most_blocks = comm.facts.most_blocks, .beside = routes}, diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  route->stream = route->device->create_stream(diagnostics);
  if (route->stream != nullptr) return route;
  route->communicator->abort(diagnostics);  // the peer has one
  return nullptr;
}

}  // namespace

PeerRoute::~PeerRoute() {
  plans.reset();
  communicator.reset();
  if (stream != nullptr) device->destroy_stream(stream);
}

PeerRoute* Messages::find(uint32_t from, uint32_t to) const {
  const std::lock_guard lock(mutex_);
  const auto found = routes_.find({from, to});
  return found == routes_.end() ? nullptr : found->second.get();
}

PeerRoute* Messages::make(uint32_t from, uint32_t to, Diagnostics& diagnostics) {
  if (PeerRoute* const route = find(from, to)) return route;
  Diagnostics errors;
  std::unique_ptr<PeerRoute> made = make_route(comm_, from, to, errors);
  report_errors(errors, from, to, diagnostics);
  if (made == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  if (aborted_.empty()) return (routes_[{from, to}] = std::move(made)).get();
  made->communicator->abort(aborted_);
  diagnostics.error("aborted", {}, aborted_);
  return nullptr;
}

void Messages::abort(const std::string& why) {
  const std::lock_guard lock(mutex_);
  aborted_ = why;
  for (const auto& [ends, route] : routes_) route->communicator->abort(why);
}

// They stay while this lives, and abort() must not wait for a thread that waits for one of them.
std::vector<PeerRoute*> Messages::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<PeerRoute*> all;
  for (const auto& [ends, route] : routes_) all.push_back(route.get());
  return all;
}

bool Messages::check(Diagnostics& diagnostics) const {
  const std::vector<PeerRoute*> routes = all();
  return std::all_of(routes.begin(), routes.end(), [&](const PeerRoute* route) {
    Diagnostics errors;
    const bool is_well = route->communicator->check(errors);
    report_errors(errors, route->from, route->to, diagnostics);
    return is_well;
  });
}

bool Messages::drain(Diagnostics& diagnostics) const {
  const std::vector<PeerRoute*> routes = all();
  return std::all_of(routes.begin(), routes.end(),
                     [&](const PeerRoute* route) { return route->device->drain(diagnostics); });
}

}  // namespace mscclc::nccl
