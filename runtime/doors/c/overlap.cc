// GEMMs that overlap with collectives.
#include "runtime/api/overlap.h"

#include <fmt/format.h>

#include "plans/format/json/json_out.h"
#include "plans/format/json/json_writer.h"
#include "runtime/api/gpu.h"
#include "runtime/doors/c/errors.h"
#include "runtime/doors/c/handles.h"
#include "runtime/doors/c/libraries/other_libraries.h"
#include "runtime/doors/c/orders.h"
#include "runtime/doors/c/overlap_args.h"
#include "runtime/doors/c/ranges.h"

namespace mscclc::capi {
namespace {

constexpr const char* kNoOverlap = "'overlap' is none";

template <class Write>
char* json_text(const Write& write) {
  std::string text;
  JsonOut out([&](std::string_view more) {
    text += more;
    return true;
  });
  JsonWriter json(out, {});
  write(json);
  out.flush();
  return copy_text(text);
}

/// What an object is made from.
struct Making {
  mscclc_overlap_config_t given = MSCCLC_OVERLAP_CONFIG_INIT;
  std::string why_not = "";  ///< not "": what is wrong with that
  OverlapOwner owner;
  std::shared_ptr<SharedLibraries> libraries = nullptr;
  std::shared_ptr<const MeasuredTables> measured = nullptr;
  std::unique_ptr<mscclc_overlap> made = std::make_unique<mscclc_overlap>();

  void of(const mscclc_comm& comm) {
    owner = {comm.device, comm.communicator, comm.collectives, comm.turns};
    libraries = comm.libraries;
    measured = comm.registry->measured();
    made->device = comm.config.device;
    made->finalized = comm.finalized;
    if (given.order == MSCCLC_ORDER_DEFAULT) given.order = comm.config.order;
  }
  /// One rank, without a communicator. False: reported.
  bool alone(Diagnostics& diagnostics) {
    owner.device = open_device(given.device, diagnostics);
    made->device = given.device;
    if (owner.device == nullptr) return false;
    if (given.device != MSCCLC_HOST) return true;
    made->stream = owner.device->create_stream(diagnostics);
    return made->stream != nullptr;
  }
};

/// The other ranks, which make the object, learn why this one does not.
mscclc_result_t refuse_making(const Making& making) {
  if (making.owner.communicator != nullptr) {
    Diagnostics ignored;
    (void)Overlap::create(making.owner, {}, {.why_not = making.why_not}, ignored);
  }
  return refuse("mscclc_overlap_create", making.why_not.c_str());
}

mscclc_result_t create(Making making, mscclc_overlap_t** overlap) {
  Diagnostics diagnostics;
  if (!making.why_not.empty()) return refuse_making(making);
  const auto config = config_of(making.given);
  if (!config) {
    making.why_not = config.error().text();
    return refuse_making(making);
  }
  if (making.owner.device == nullptr && !making.alone(diagnostics)) return fail(diagnostics);
  mscclc_overlap& made = *making.made;
  const bool on_host = made.device == MSCCLC_HOST;
  OverlapOptions options{.programs = overlap_programs(),
                         .nccl = nccl_library(on_host, making.libraries)};
  // Only where it is asked for: it is large, and brings others.
  if (config->backend == "cublasmp") {
    options.cublasmp = cublasmp_library(on_host, making.libraries);
  }
  options.measured = making.measured;
  if (making.given.gemm != nullptr) {
    made.gemm = std::make_unique<GemmCallback>(making.given.gemm, making.given.gemm_user,
                                               making.given.gemm_workspace_bytes);
    options.gemm = made.gemm.get();
  }
  made.owner = making.owner;
  made.weights = making.given.weights;
  made.overlap = Overlap::create(making.owner, *config, options, diagnostics);
  if (made.overlap == nullptr) return fail(diagnostics);
  *overlap = Handles<mscclc_overlap>::add(std::move(making.made));
  return MSCCLC_SUCCESS;
}

/// On the host, without a communicator, runs are over when they return.
mscclc_result_t run_alone(mscclc_overlap& overlap, const OverlapCall& call) {
  Diagnostics diagnostics;
  const bool ran = overlap.overlap->run(call, overlap.stream, diagnostics) &&
                   overlap.owner.device->synchronize(overlap.stream, diagnostics) &&
                   overlap.overlap->check(diagnostics);
  return ran ? mscclc_result_t{MSCCLC_SUCCESS} : fail(diagnostics);
}

mscclc_result_t run(mscclc_overlap& overlap, const OverlapCall& call, mscclc_stream_t stream) {
  constexpr const char* kHere = "mscclc_overlap_run";
  if (overlap.stream != nullptr) {
    if (stream == nullptr) return run_alone(overlap, call);
    return refuse(kHere, "without a communicator on the host device, 'stream' must be NULL");
  }
  if (const char* why = why_no_stream(overlap.device, stream)) return refuse(kHere, why);
  Diagnostics diagnostics;
  return overlap.overlap->run(call, stream, diagnostics) ? mscclc_result_t{MSCCLC_SUCCESS}
                                                         : fail(diagnostics);
}

}  // namespace
}  // namespace mscclc::capi

using namespace mscclc;
using namespace mscclc::capi;

mscclc_overlap::~mscclc_overlap() {
  overlap.reset();
  if (stream != nullptr && owner.device != nullptr) owner.device->destroy_stream(stream);
}

mscclc_result_t mscclc_overlap_create(mscclc_comm_t* comm, const mscclc_overlap_config_t* config,
                                      mscclc_overlap_t** overlap) {
  constexpr const char* kHere = "mscclc_overlap_create";
  return guarded([&] {
    const NvtxRange range = range_of(kHere);
    Making making;
    if (overlap == nullptr) {
      making.why_not = "'overlap' is NULL";
    } else {
      *overlap = nullptr;
    }
    if (config == nullptr || !take_struct(config, making.given)) {
      making.why_not = "'config' is NULL, or has no size that this version knows";
    }
    if (comm == nullptr) return create(std::move(making), overlap);
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse(kHere, "'comm' is not a communicator");
    if (*comm->finalized) return refuse_finalized(kHere);
    making.of(*comm);
    return create(std::move(making), overlap);
  });
}

mscclc_result_t mscclc_overlap_workspace(mscclc_overlap_t* overlap, size_t* bytes) {
  return guarded([&] {
    const Use<mscclc_overlap> use(overlap);
    if (!use || bytes == nullptr) {
      return use.refuse("mscclc_overlap_workspace", "'overlap' is none, or 'bytes' is NULL");
    }
    *bytes = overlap->overlap->workspace_bytes();
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_overlap_run(mscclc_overlap_t* overlap, const mscclc_overlap_call_t* call,
                                   mscclc_stream_t stream) {
  constexpr const char* kHere = "mscclc_overlap_run";
  return guarded([&] {
    const NvtxRange range = range_of(kHere);
    mscclc_overlap_call_t own = MSCCLC_OVERLAP_CALL_INIT;
    const Use<mscclc_overlap> use(overlap);
    if (!use || call == nullptr || !take_struct(call, own)) {
      return use.refuse(kHere, "'overlap' is none, or 'call' is not of this version");
    }
    if (overlap->finalized != nullptr && *overlap->finalized) return refuse_finalized(kHere);
    const auto given = overlap_call_of(own, overlap->weights);
    if (!given) return refuse(kHere, given.error().text().c_str());
    return run(*overlap, *given, stream);
  });
}

mscclc_result_t mscclc_overlap_explain(mscclc_overlap_t* overlap, char** text) {
  return guarded([&] {
    const Use<mscclc_overlap> use(overlap);
    if (!use || text == nullptr) {
      return use.refuse("mscclc_overlap_explain", "'overlap' is none, or 'text' is NULL");
    }
    const Overlap& of = *overlap->overlap;
    *text = json_text([&](JsonWriter& json) {
      const auto members = [&](const OverlapChoice& choice) {
        json.members("backend", choice.backend, "chunks", choice.chunks, "budget", choice.budget,
                     "why", choice.why);
      };
      json.open('{');
      members(of.choice());
      json.members("memory", of.held_bytes());
      if (const OverlapChoice* const captured = of.choice_in_graphs()) {
        json.members("in_graphs", [&] {
          json.open('{');
          members(*captured);
          json.close('}');
        });
      }
      json.close('}');
    });
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_overlap_backends(int32_t device, char** text) {
  return guarded([&] {
    if (text == nullptr) return refuse("mscclc_overlap_backends", "'text' is NULL");
    const bool on_host = device == MSCCLC_HOST;
    if (device < 0 && !on_host) {
      const auto why = fmt::format("'device' is {}, which is no GPU and not MSCCLC_HOST", device);
      return refuse("mscclc_overlap_backends", why.c_str());
    }
    const OtherGemmLibrary cublasmp = cublasmp_library(on_host, nullptr);
    // cuBLASLt last: cuBLASMp brings one.
    const auto backends = overlap_backends({.device = on_host ? "" : cuda::why_no_gpu(device),
                                            .nccl = nccl_library(on_host, nullptr).missing,
                                            .cublasmp = cublasmp.missing,
                                            .cublasmp_first_uncaptured = cublasmp.first_uncaptured,
                                            .gemms = on_host ? "" : cuda::why_no_cublaslt()});
    *text = json_text([&](JsonWriter& json) {
      json.list(backends, [&](const OverlapBackend& backend) {
        json.object("name", backend.name, "available", backend.available, "why", backend.why);
      });
    });
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_overlap_destroy(mscclc_overlap_t* overlap) {
  constexpr const char* kHere = "mscclc_overlap_destroy";
  return guarded([&] {
    const NvtxRange range = range_of(kHere);
    if (overlap == nullptr) return mscclc_result_t{MSCCLC_SUCCESS};
    std::shared_ptr<OneThread> one_thread;
    {
      const Use<mscclc_overlap> use(overlap);
      if (!use) return use.refuse(kHere, kNoOverlap);
      const auto& communicator = overlap->owner.communicator;
      if (communicator != nullptr) one_thread = communicator->one_thread();
    }
    if (one_thread == nullptr) return destroy(overlap, kHere, kNoOverlap);
    Diagnostics diagnostics;
    const OneThread::Visit visit(*one_thread, diagnostics);
    return visit ? destroy(overlap, kHere, kNoOverlap) : fail(diagnostics);
  });
}
