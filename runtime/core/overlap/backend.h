// What a backend is: what it makes once, and what it puts on streams in a run. Those with a plan
// beside GEMMs are in flagged.cc and copy_engine.cc, those of a collective and GEMMs in sequence in
// sequence.cc, another library's that do both in other_gemms.cc.
#pragma once

#include <memory>
#include <vector>

#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/api/overlap.h"
#include "runtime/core/overlap/choice.h"
#include "runtime/core/overlap/products.h"
#include "runtime/core/overlap/tiles.h"

namespace mscclc::overlap {

/// What a backend works for; all outlives it.
struct Job {
  const OverlapConfig& config;
  const OverlapChoice& choice;
  const OverlapOptions& options;
  const OverlapOwner& owner;
  Device& device;
  GemmStreams& streams;
  Products& products;
  uint32_t rank = 0, ranks = 1;

  const KindInfo& kind() const { return info(config.kind); }
  /// Elements of a rank's part of the message.
  uint64_t part_elements() const { return config.m * row_elements(config) / ranks; }
};

/// A run, as all backends get it.
struct RunPlace {
  const OverlapCall& call;
  StreamHandle stream;
  GemmScratch gemm;  ///< for GEMMs
  uint8_t* rest;     ///< of the workspace: Backend::workspace_bytes()
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Of a workspace, besides what GEMMs need.
  virtual uint64_t workspace_bytes() const = 0;
  /// Of the device, besides a workspace, from connect() on.
  virtual uint64_t held_bytes() const { return 0; }
  /// What can be done without the other ranks, and may fail. False: reported.
  [[nodiscard]] virtual bool prepare(Diagnostics& diagnostics) = 0;
  /// The rest; collective. False: reported.
  [[nodiscard]] virtual bool connect(Diagnostics& diagnostics) = 0;
  /// False: a run on this stream cannot be made, which is reported; nothing has begun.
  [[nodiscard]] virtual bool may_run(StreamHandle, Diagnostics&) { return true; }
  /// Puts a run on its stream, up to the bias and the activation of a sum. False: reported.
  [[nodiscard]] virtual bool run(const RunPlace& place, Diagnostics& diagnostics) = 0;
  /// A rank has failed, and no run follows: ends what waits for it in another library, which the
  /// communicator's abort does not reach.
  virtual void abort() {}
  /// After a run that failed, and the communicator's abort: what comes on the stream next follows
  /// all that the run has put on others.
  virtual void join(StreamHandle) {}
  /// Where out[0] is before the bias of a sum is added, and its activation; nullptr: it is there.
  virtual const void* sum_place() const { return nullptr; }
  /// What it multiplies by Job::products.
  virtual const std::vector<Tile>& tiles() const = 0;
  /// May a run ask for what was gathered?
  virtual bool gives_gathered() const { return true; }
};

std::unique_ptr<Backend> make_flagged(const Job& job);
std::unique_ptr<Backend> make_copy_engine(const Job& job);
std::unique_ptr<Backend> make_sequence(const Job& job);
std::unique_ptr<Backend> make_other_gemms(const Job& job);

/// Of what is gathered or exchanged: row 0 of the own part as the caller's A has it, so that rows
/// of [m, k] can be found by their number.
const void* own_rows(const Job& job, const void* a);

}  // namespace mscclc::overlap
