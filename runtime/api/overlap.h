// GEMMs that overlap with collectives: one object for a kind, shape, types and communicator, which
// is run any number of times (docs/overlap.md).
//
//   auto op = Overlap::create({device, communicator, collectives},
//                             {.kind = OverlapKind::allgather_gemm, .m = m, .k = k, .n = {n}},
//                             {.programs = builtin_overlap_programs()}, problems);  // on all ranks
//   op->run({.a = a, .b = {b}, .out = {out}}, stream, problems);                    // on all ranks
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/contract/order.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/dtypes.h"
#include "runtime/api/gemm.h"
#include "runtime/api/stream.h"

namespace mscclc {

class Collectives;
class Communicator;
class Device;
class OverlapTurns;
struct CollectiveCall;
struct MeasuredTables;
struct Program;

enum class OverlapKind : uint8_t {
  allgather_gemm = 1,
  gemm_reducescatter = 2,
  gemm_allreduce = 3,
  alltoall_gemm = 4
};
constexpr std::string_view name(OverlapKind kind) {
  switch (kind) {
    case OverlapKind::allgather_gemm:
      return "allgather_gemm";
    case OverlapKind::gemm_reducescatter:
      return "gemm_reducescatter";
    case OverlapKind::gemm_allreduce:
      return "gemm_allreduce";
    case OverlapKind::alltoall_gemm:
      return "alltoall_gemm";
  }
  return "unknown";
}

/// What an object is for. All but own_workspace and b_transposed is the same on all ranks. R: the
/// ranks.
struct OverlapConfig {
  OverlapKind kind = OverlapKind::allgather_gemm;
  /// Rows of a rank's GEMM: [m, k] is what was gathered or exchanged, or A where sums are made. A
  /// multiple of R, except of gemm_allreduce.
  uint64_t m = 0, k = 0;
  std::vector<uint64_t> n = {};  ///< columns of each B; one where sums are made
  bool b_transposed = false;     ///< ranks may differ in it, except of cuBLASMp
  Dtype a_dtype = Dtype::bf16, b_dtype = Dtype::bf16, out_dtype = Dtype::bf16;
  std::optional<SumOrder> order = {};  ///< of sums over ranks; nullopt: by MSCCLC_ORDER
  bool bias = false;                   ///< runs give one for each B: added once, after the sum
  Activation activation = Activation::none;  ///< of what is complete, bias and all
  std::string backend = "auto";              ///< overlap_backends() lists them
  /// Of each rank's rows. The same number, and the same budget, give the same GEMMs with all
  /// backends of ours, and so the same bits. 0: as the table says.
  uint32_t chunks = 0;
  uint32_t budget = 0;        ///< multiprocessors for the plan while GEMMs run; 0: by the table
  bool own_workspace = true;  ///< false: runs give one
  std::string agreed = "";    ///< what callers do besides, the same on all ranks
};

/// One run: memory of the device, at multiples of 16 bytes, scales of 4. Vectors have an entry for
/// each B.
struct OverlapCall {
  const void* a = nullptr;
  std::vector<const void*> b = {};
  std::vector<void*> out = {};
  std::vector<const void*> bias = {};
  std::vector<void*> pre_activation = {};  ///< get what the activation is of, as out; empty: none
  const float* a_scale = nullptr;          ///< of types of 8 bits; nullptr: 1
  std::vector<const float*> b_scale = {};  ///< empty: 1
  void* gathered = nullptr;                ///< gets what was gathered or exchanged, [m, k]
  void* workspace = nullptr;               ///< nullptr where the object has its own
  uint64_t workspace_bytes = 0;
};

/// A program of plans/overlap, and what it is compiled for.
struct OverlapProgram {
  std::string name;
  uint32_t ranks, chunks, instances;
  auto operator<=>(const OverlapProgram&) const = default;
};

/// The programs of plans/overlap as plans. Thread safety: from any thread.
class OverlapPrograms {
 public:
  virtual ~OverlapPrograms() = default;
  /// Compiled and proved, once. nullptr: reported.
  [[nodiscard]] virtual std::shared_ptr<const Program> program(const OverlapProgram& what,
                                                               Diagnostics& diagnostics) = 0;
};
std::shared_ptr<OverlapPrograms> builtin_overlap_programs();

/// Collectives of another library over the same ranks, and no reductions but sums.
class OtherCollectives {
 public:
  virtual ~OtherCollectives() = default;
  /// Of kind, count, dtype, input and output. False: reported.
  [[nodiscard]] virtual bool call(const CollectiveCall& call, StreamHandle stream,
                                  Diagnostics& diagnostics) = 0;
  /// Ends what waits for other ranks, one of which has failed: no call follows.
  virtual void abort() = 0;
};

/// GEMMs of another library that communicate themselves, made for one object.
class OtherGemms {
 public:
  virtual ~OtherGemms() = default;
  /// Queues a run: all but OverlapCall::gathered, and the bias of a sum. False: reported.
  [[nodiscard]] virtual bool run(const OverlapCall& call, StreamHandle stream,
                                 Diagnostics& diagnostics) = 0;
  /// Of the device, in bytes.
  virtual uint64_t held_bytes() const = 0;
  /// Ends what waits for other ranks, one of which has failed: no run follows.
  virtual void abort() = 0;
};

/// What an object keeps alive until it has gone. One rank needs only a device.
struct OverlapOwner {
  std::shared_ptr<Device> device;
  std::shared_ptr<Communicator> communicator = nullptr;
  std::shared_ptr<Collectives> collectives = nullptr;
  /// What objects of a communicator share; nullptr: nothing else runs beside this one.
  std::shared_ptr<OverlapTurns> turns = nullptr;
};

/// Another library's collectives, for a backend. `make` is collective. nullptr: reported.
struct OtherLibrary {
  std::function<std::unique_ptr<OtherCollectives>(Communicator&, Diagnostics&)> make;
  std::string missing = "this program does not say where it is";  ///< "": it is there
};

/// Another library's GEMMs, for a backend. `make` is collective, and so is the end of what it
/// makes. nullptr: reported.
struct OtherGemmLibrary {
  std::function<std::unique_ptr<OtherGemms>(Communicator&, const OverlapConfig&, Diagnostics&)>
      make;
  std::string missing = "this program does not say where it is";  ///< "": it is there
  std::string first_uncaptured = "";  ///< why an object's first run cannot be captured; "": it can
};

struct OverlapOptions {
  std::shared_ptr<OverlapPrograms> programs = nullptr;
  GemmProvider* gemm = nullptr;  ///< outlives the object; nullptr: the device's own
  OtherLibrary nccl = {};
  OtherGemmLibrary cublasmp = {};
  /// What `auto` asks before what is compiled in: PlanRegistry::measured(), the same on all ranks.
  std::shared_ptr<const MeasuredTables> measured = nullptr;
  /// Not "": this rank has no config, and why. The other ranks learn it.
  std::string why_not = "";
};

/// A way to make the runs.
struct OverlapBackend {
  std::string name;
  bool available = false;
  std::string why;  ///< what it does, or why it is not there
};
/// Why something that backends need is not there; "": it is.
struct OverlapMissing {
  std::string device = "", nccl = "", cublasmp = "";
  std::string cublasmp_first_uncaptured = "";  ///< as OtherGemmLibrary says it
  std::string gemms = "";  ///< the device's own products, which a caller's may replace
};
/// All of them. Needs no device, and no communicator.
std::vector<OverlapBackend> overlap_backends(const OverlapMissing& missing);

/// What runs, and why.
struct OverlapChoice {
  std::string backend;
  uint32_t chunks = 0;  ///< 0: one GEMM for each B
  uint32_t budget = 0;  ///< multiprocessors that GEMMs leave free; 0: none
  std::string why;
};

/// What objects of one communicator share, so that the plans of those that run at once leave room
/// for their GEMMs: more than a few follow one another. Thread safety: the communicator's.
std::shared_ptr<OverlapTurns> make_overlap_turns();

/// Thread safety: the communicator's.
class Overlap {
 public:
  /// Collective: all that is done once, so that the first run may be captured. Errors: bad-call,
  /// with what is required and what was given; options-differ, with the values of both ranks …
  [[nodiscard]] static std::unique_ptr<Overlap> create(OverlapOwner owner,
                                                       const OverlapConfig& config,
                                                       const OverlapOptions& options,
                                                       Diagnostics& diagnostics);
  /// Waits for all that is on the device, as its runs may be in graphs: so nothing there may wait
  /// for this thread. No graph may run it any more.
  ~Overlap();
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  const OverlapChoice& choice() const;
  /// For runs that are captured; nullptr: the same.
  const OverlapChoice* choice_in_graphs() const;
  /// Of OverlapCall, in bytes.
  uint64_t workspace_bytes() const;
  /// Of the device, that it holds besides a workspace of the caller's. (What plans of collectives
  /// share is the communicator's.)
  uint64_t held_bytes() const;
  /// Queues a run: after what is on the stream, and before what comes on it. Runs of one object
  /// follow one another. All ranks make the same runs in the same order, and capture the same ones.
  [[nodiscard]] bool run(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics);
  /// Reports what has failed in runs that have ended, where there is no communicator to ask; true:
  /// nothing.
  [[nodiscard]] bool check(Diagnostics& diagnostics) const;
  Device& device() const;

 private:
  struct State;
  explicit Overlap(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mscclc
