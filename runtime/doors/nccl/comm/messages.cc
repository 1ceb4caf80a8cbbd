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

/// Reports errors of a way, which counts its two ranks from 0.
void report_errors(const Diagnostics& errors, uint32_t from, uint32_t to,
                   Diagnostics& diagnostics) {
  for (Diagnostic error : errors.all()) {
    error.message = fmt::format("messages from rank {} (rank 0 here) to rank {} (rank 1 here): {}",
                                from, to, error.message);
    diagnostics.add(std::move(error));
  }
}

std::unique_ptr<Way> make_way(const Comm& comm, uint32_t from, uint32_t to,
                              Diagnostics& diagnostics) {
  auto way = std::make_unique<Way>();
  way->from = from;
  way->to = to;
  way->device = open_device(comm.ordinal, diagnostics);
  if (way->device == nullptr) return nullptr;
  std::unique_ptr<Bootstrap> bootstrap = meet_for_messages(comm, from, to, diagnostics);
  if (bootstrap == nullptr) return nullptr;
  way->communicator = Communicator::create(std::move(bootstrap), way->device, {}, diagnostics);
  if (way->communicator == nullptr) return nullptr;
  // Blocks of a message wait for the peer, which may wait for another message of this rank's.
  const uint64_t ways = 2 * (uint64_t{comm.ranks} - 1);
  way->plans = make_plan_calls(
      *way->communicator, {.most_blocks = comm.facts.most_blocks, .beside = ways}, diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  way->stream = way->device->create_stream(diagnostics);
  if (way->stream != nullptr) return way;
  way->communicator->abort(diagnostics);  // the peer has one
  return nullptr;
}

}  // namespace

Way::~Way() {
  plans.reset();
  communicator.reset();
  if (stream != nullptr) device->destroy_stream(stream);
}

Way* Messages::find(uint32_t from, uint32_t to) const {
  const std::lock_guard lock(mutex_);
  const auto found = ways_.find({from, to});
  return found == ways_.end() ? nullptr : found->second.get();
}

Way* Messages::make(uint32_t from, uint32_t to, Diagnostics& diagnostics) {
  if (Way* const way = find(from, to)) return way;
  Diagnostics errors;
  std::unique_ptr<Way> made = make_way(comm_, from, to, errors);
  report_errors(errors, from, to, diagnostics);
  if (made == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  if (aborted_.empty()) return (ways_[{from, to}] = std::move(made)).get();
  made->communicator->abort(aborted_);
  diagnostics.error("aborted", {}, aborted_);
  return nullptr;
}

void Messages::abort(const std::string& why) {
  const std::lock_guard lock(mutex_);
  aborted_ = why;
  for (const auto& [ends, way] : ways_) way->communicator->abort(why);
}

// They stay while this lives, and abort() must not wait for a thread that waits for one of them.
std::vector<Way*> Messages::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Way*> all;
  for (const auto& [ends, way] : ways_) all.push_back(way.get());
  return all;
}

bool Messages::check(Diagnostics& diagnostics) const {
  const std::vector<Way*> ways = all();
  return std::all_of(ways.begin(), ways.end(), [&](const Way* way) {
    Diagnostics errors;
    const bool is_well = way->communicator->check(errors);
    report_errors(errors, way->from, way->to, diagnostics);
    return is_well;
  });
}

bool Messages::drain(Diagnostics& diagnostics) const {
  const std::vector<Way*> ways = all();
  return std::all_of(ways.begin(), ways.end(),
                     [&](const Way* way) { return way->device->drain(diagnostics); });
}

}  // namespace mscclc::nccl
