// Plans: registries, selectors, programs that are compiled, and plans by handle.
#include <fmt/format.h>

#include <cstdlib>

#include "compiler/compile.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"
#include "runtime/api/builtin_library.h"
#include "runtime/api/plan.h"
#include "runtime/doors/c/errors.h"
#include "runtime/doors/c/externals.h"
#include "runtime/doors/c/handles.h"
#include "runtime/doors/c/orders.h"
#include "runtime/doors/c/plan_text.h"
#include "runtime/doors/c/ranges.h"
#include "runtime/support/process/per_process.h"
#include "runtime/support/result_kind.h"

namespace mscclc::capi {

char* copy_text(std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  return copy;
}

namespace {

struct DefaultRegistry {
  std::mutex mutex;
  std::shared_ptr<PlanRegistry> made;
  const std::shared_ptr<OverlapPrograms> overlaps = builtin_overlap_programs();
};

}  // namespace

std::shared_ptr<PlanRegistry> default_registry(Diagnostics& diagnostics) {
  auto& own = process_wide<DefaultRegistry>();
  const std::lock_guard lock(own.mutex);
  if (own.made == nullptr) {
    auto library = builtin_library({}, diagnostics);
    if (library != nullptr) own.made = PlanRegistry::create({.library = library}, diagnostics);
  }
  return own.made;
}

std::shared_ptr<OverlapPrograms> overlap_programs() {
  return process_wide<DefaultRegistry>().overlaps;
}

namespace {

mscclc_result_t give_out(std::shared_ptr<PlanRegistry> plans, mscclc_registry_t** registry,
                         const Diagnostics& diagnostics) {
  if (plans == nullptr) return fail(diagnostics);
  auto made = std::make_unique<mscclc_registry>();
  made->plans = std::move(plans);
  *registry = Handles<mscclc_registry>::add(std::move(made));
  return MSCCLC_SUCCESS;
}

mscclc_request_t request_of(const PlanRequest& request) {
  mscclc_request_t made = {};
  made.size = sizeof made;
  made.kind = static_cast<int32_t>(request.call.kind);
  made.dtype = static_cast<int32_t>(request.call.dtype);
  made.op = static_cast<int32_t>(request.call.op);
  made.accumulate = request.call.accumulate ? static_cast<int32_t>(*request.call.accumulate)
                                            : MSCCLC_DTYPE_DEFAULT;
  made.ranks = request.call.ranks;
  made.nodes = request.call.nodes;
  made.root = request.call.root;
  made.in_place = request.call.in_place ? 1 : 0;
  made.shift = request.call.shift;
  made.bytes = request.call.bytes;
  made.registered = request.registered ? 1 : 0;
  made.capturing = request.call.captured ? 1 : 0;
  made.architecture = request.architecture;
  made.multiprocessors = request.multiprocessors;
  made.tag = request.tag.c_str();
  made.either_place = request.call.either_place ? 1 : 0;
  made.order = order_of(request.call.order);
  return made;
}

Selection ask(mscclc_selector_fn selector, void* user, const PlanRequest& request) {
  char plan[256] = {};
  const mscclc_request_t facts = request_of(request);
  switch (selector(user, &facts, plan)) {
    case MSCCLC_SELECT_NONE:
      return {.kind = Selection::Kind::none};
    case MSCCLC_SELECT_PLAN:
      return {.kind = Selection::Kind::plan, .plan = std::string(plan, strnlen(plan, sizeof plan))};
    case MSCCLC_SELECT_USUAL:
      return {};
  }
  return {.kind = static_cast<Selection::Kind>(UINT8_MAX)};  // which is none
}

/// "R=8" as a name and a value. False: it is none.
bool add_define(const char* text, FrontEndOptions& options) {
  const std::string_view all = text == nullptr ? "" : text;
  const size_t at = all.find('=');
  if (at == 0 || at == std::string_view::npos) return false;
  options.defines.emplace_back(all.substr(0, at), all.substr(at + 1));
  return true;
}

}  // namespace

std::optional<std::string> compile_to_json(Sources& sources, FileId file,
                                           const FrontEndOptions& options,
                                           Diagnostics& diagnostics) {
  const auto target = find_target("sm_90", diagnostics);
  if (!target) return std::nullopt;
  PassOptions passes;
  passes.limits = target->op_limits();
  ProofGate gate{.try_copies = true};
  const auto program = compile(sources, file, options, passes, diagnostics, &gate);
  if (!program) return std::nullopt;
  if (!program->split) {
    diagnostics.error("not-split", {}, "IR text that is not a plan yet: it lacks the pass 'split'");
    return std::nullopt;
  }
  return write_plan(*program, *target, diagnostics, gate.proof ? &*gate.proof : nullptr);
}

}  // namespace mscclc::capi

using namespace mscclc;
using namespace mscclc::capi;

mscclc_result_t mscclc_registry_create(mscclc_registry_t** registry) {
  return guarded([&] {
    if (registry == nullptr) return refuse("mscclc_registry_create", "'registry' is NULL");
    *registry = nullptr;
    Diagnostics diagnostics;
    auto library = builtin_library({}, diagnostics);
    if (library == nullptr) return fail(diagnostics);
    return give_out(PlanRegistry::create({.library = library}, diagnostics), registry, diagnostics);
  });
}

mscclc_result_t mscclc_registry_default(mscclc_registry_t** registry) {
  return guarded([&] {
    if (registry == nullptr) return refuse("mscclc_registry_default", "'registry' is NULL");
    *registry = nullptr;
    Diagnostics diagnostics;
    return give_out(default_registry(diagnostics), registry, diagnostics);
  });
}

mscclc_result_t mscclc_registry_destroy(mscclc_registry_t* registry) {
  return guarded(
      [&] { return destroy(registry, "mscclc_registry_destroy", "'registry' is none"); });
}

mscclc_result_t mscclc_registry_add(mscclc_registry_t* registry, const char* path) {
  return guarded([&] {
    const Use<mscclc_registry> use(registry);
    if (!use || path == nullptr) {
      return use.refuse("mscclc_registry_add", "'registry' is not a registry, or 'path' is NULL");
    }
    Diagnostics diagnostics;
    return registry->plans->add_path(path, diagnostics) ? mscclc_result_t{MSCCLC_SUCCESS}
                                                        : fail(diagnostics);
  });
}

mscclc_result_t mscclc_register_plan(mscclc_registry_t* registry, const char* json, size_t bytes,
                                     const char* name, char id[65]) {
  return guarded([&] {
    const Use<mscclc_registry> use(registry);
    if (!use || json == nullptr || name == nullptr) {
      return use.refuse("mscclc_register_plan",
                        "'registry' is not a registry, or 'json' or 'name' is NULL");
    }
    Diagnostics diagnostics;
    const auto hash = registry->plans->register_plan({json, bytes}, name, diagnostics);
    if (!hash) return fail(diagnostics);
    if (id != nullptr) {
      const size_t length = hash->copy(id, 64);
      id[length] = '\0';
    }
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_remove_plan(mscclc_registry_t* registry, const char* plan) {
  return guarded([&] {
    const Use<mscclc_registry> use(registry);
    if (!use || plan == nullptr) {
      return use.refuse("mscclc_remove_plan", "'registry' is not a registry, or 'plan' is NULL");
    }
    if (registry->plans->remove(plan)) return mscclc_result_t{MSCCLC_SUCCESS};
    return fail(MSCCLC_NO_PLAN, std::string("the registry has no plan '") + plan + "'");
  });
}

mscclc_result_t mscclc_set_selector(mscclc_registry_t* registry, mscclc_selector_fn selector,
                                    void* user) {
  return guarded([&] {
    const Use<mscclc_registry> use(registry);
    if (!use) return use.refuse("mscclc_set_selector", "'registry' is none");
    PlanSelector made;
    if (selector != nullptr) {
      made = [selector, user](const PlanRequest& request) { return ask(selector, user, request); };
    }
    registry->plans->set_selector(std::move(made));
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_compile(const char* source, size_t bytes, const char* name,
                               const char* const* defines, size_t defines_count, char** json,
                               char** diagnostics) {
  return guarded([&] {
    if (json == nullptr || diagnostics == nullptr) {
      return refuse("mscclc_compile", "'json' or 'diagnostics' is NULL");
    }
    *json = *diagnostics = nullptr;
    if (source == nullptr || name == nullptr || (defines == nullptr && defines_count > 0)) {
      return refuse("mscclc_compile", "'source', 'name' or 'defines' is NULL");
    }
    FrontEndOptions options{.defines = {},
                            .read_file = [](const std::string&) { return std::nullopt; },
                            .relative_names = true};
    for (size_t i = 0; i < defines_count; ++i) {
      if (!add_define(defines[i], options)) {
        return refuse("mscclc_compile", "a define is not 'name=value'");
      }
    }
    Sources sources;
    Diagnostics said;
    const FileId file = sources.add(name, std::string(source, bytes));
    const auto plan = compile_to_json(sources, file, options, said);
    const std::string text = render_text(said, sources);
    if (!text.empty()) *diagnostics = copy_text(text);
    if (!plan) return fail(MSCCLC_NOT_PROVED, text);
    *json = copy_text(*plan);
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

namespace {

/// A plan of rows that is loaded for less than one would refuse every call but an empty one.
bool lacks_a_row(const Program& plan, uint64_t max_bytes, Dtype dtype, Diagnostics& diagnostics) {
  const uint64_t columns = plan.contract.any_columns ? 0 : plan.contract.columns;
  const uint64_t least = columns * info(dtype).bytes * Chunking::parts_of_message(plan.contract);
  if (max_bytes == 0 || max_bytes >= least) return false;
  diagnostics.error(
      "row-call", {},
      fmt::format("the plan is loaded for messages of up to {} bytes, and a row of {} "
                  "{} takes {}: load it for that times the most rows of a call",
                  max_bytes, columns, info(dtype).name, least));
  return true;
}

}  // namespace

void mscclc_free(char* text) { std::free(text); }

mscclc_result_t mscclc_plan_load(mscclc_comm_t* comm, const char* json, size_t bytes,
                                 const char* name, uint64_t max_bytes, mscclc_dtype_t dtype,
                                 mscclc_plan_t** plan) {
  return guarded([&] {
    const NvtxRange range = range_of("mscclc_plan_load");
    if (plan != nullptr) *plan = nullptr;
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_plan_load", "'comm' is not a communicator");
    if (*comm->finalized) return refuse_finalized("mscclc_plan_load");
    Diagnostics diagnostics;
    if (plan == nullptr || json == nullptr || name == nullptr || dtype < 0 ||
        static_cast<size_t>(dtype) >= dtype_table().size()) {
      constexpr auto kWrong = "'json', 'name' or 'plan' is NULL, or 'dtype' is not a type";
      diagnostics.error("bad-call", {}, kWrong);
      (void)comm->communicator->load(nullptr, {}, diagnostics);  // all ranks learn it
      return refuse("mscclc_plan_load", kWrong);
    }
    auto read = load_plan({json, bytes}, name, diagnostics);  // nullptr: all ranks learn it
    if (read != nullptr && lacks_a_row(*read, max_bytes, static_cast<Dtype>(dtype), diagnostics)) {
      read.reset();
    }
    LoadOptions options{
        .max_bytes = max_bytes, .dtype = static_cast<Dtype>(dtype), .in_order = true};
    options.zero_copy = read != nullptr && !read->flags.empty();
    auto made = std::make_unique<mscclc_plan>();
    made->device = comm->config.device;
    made->one_thread = comm->communicator->one_thread();
    made->finalized = comm->finalized;
    made->communicator = comm->communicator;
    if (read != nullptr) {
      made->contract = read->contract;
      made->align = read->granule(options.dtype);
    }
    made->rank = comm->communicator->rank();
    made->max_bytes = max_bytes;
    made->executable = comm->communicator->load(std::move(read), options, diagnostics);
    if (made->executable == nullptr) return fail(diagnostics);
    *plan = Handles<mscclc_plan>::add(std::move(made));
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_plan_meet(mscclc_comm_t* comm) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_plan_meet", "'comm' is not a communicator");
    if (*comm->finalized) return refuse_finalized("mscclc_plan_meet");
    Diagnostics diagnostics;
    const LoadOptions options{.call = "a call whose plans it has not loaded yet", .calls_ahead = 1};
    return comm->communicator->no_rank_loads(options, diagnostics) ? mscclc_result_t{MSCCLC_SUCCESS}
                                                                   : fail(diagnostics);
  });
}

namespace {

/// Of rows: those of the narrowest type, as calls may have another than the plan was loaded for.
uint32_t granule_of(const mscclc_plan& plan) {
  const uint32_t columns = plan.contract.columns;
  return columns == 0 ? plan.align : columns * rows::kLeastBytesOfT;
}

Chunking chunking_of(const mscclc_plan& plan, uint64_t bytes) {
  const uint64_t parts = Chunking::parts_of_message(plan.contract);
  return {plan.contract, parts == 0 ? 0 : bytes / parts, granule_of(plan)};
}

/// False: no type has messages of so many bytes.
bool is_message(const mscclc_plan& plan, uint64_t bytes) {
  const uint64_t parts = Chunking::parts_of_message(plan.contract);
  if (bytes >> 62 != 0) return false;
  if (parts == 0) return bytes == 0;
  const bool whole_rows = plan.contract.columns == 0 || bytes / parts % granule_of(plan) == 0;
  const bool even = !plan.contract.even_only || chunking_of(plan, bytes).even();
  return bytes % parts == 0 && whole_rows && even;
}

/// Why launches of the plan refuse messages of so many bytes, whatever their type. Empty: they do
/// not.
std::string why_refused(const mscclc_plan& plan, uint64_t bytes) {
  if (bytes > plan.max_bytes) {
    return fmt::format("a message of {} bytes; the plan was loaded for {} at most", bytes,
                       plan.max_bytes);
  }
  if (is_message(plan, bytes)) return {};
  const std::string why =
      fmt::format("{} bytes are no message of the plan's {} ranks", bytes, plan.contract.ranks);
  if (plan.contract.columns == 0) return why;
  const uint64_t row = granule_of(plan) * Chunking::parts_of_message(plan.contract);
  return fmt::format("{}: it has whole rows of {} values, {} bytes each of f16 and bf16, {} of f32",
                     why, plan.contract.columns, row, 2 * row);
}

/// Without memory for its part in a call, a rank ends it for the others, too.
BoundCall bind(const mscclc_plan& plan, const CollectiveCall& call, Diagnostics& diagnostics) {
  BoundCall bound = plan.executable->bind(call, diagnostics);
  if (bound || !lacks_memory(diagnostics)) return bound;
  const bool alone = !plan.executable->bind_waits(call);  // together all ranks have failed
  const auto communicator = plan.communicator.lock();
  if (alone && communicator != nullptr) communicator->abort(diagnostics);
  return bound;
}

}  // namespace

mscclc_result_t mscclc_plan_buffers(mscclc_plan_t* plan, uint64_t bytes, uint64_t* input,
                                    uint64_t* output) {
  return guarded([&] {
    if (input == nullptr || output == nullptr) {
      return refuse("mscclc_plan_buffers", "'input' or 'output' is NULL");
    }
    *input = *output = 0;
    const Use<mscclc_plan> use(plan);
    if (!use) return use.refuse("mscclc_plan_buffers", "'plan' is no plan");
    const std::string why = why_refused(*plan, bytes);
    if (!why.empty()) return refuse("mscclc_plan_buffers", why.c_str());
    const Chunking chunking = chunking_of(*plan, bytes);
    *input = chunking.buffer_bytes(Side::input, plan->rank);
    *output = chunking.buffer_bytes(Side::output, plan->rank);
    if (plan->contract.output_type != rows::Type::T) {  // for elements as when it was loaded
      *output = *output * rows::kLeastBytesOfT / (plan->align / plan->contract.columns);
    }
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_plan_launch(mscclc_plan_t* plan, const mscclc_call_t* call, uint64_t bytes,
                                   mscclc_stream_t stream) {
  return guarded([&] {
    const NvtxRange range = range_of("mscclc_plan_launch", bytes);
    mscclc_call_t own = MSCCLC_CALL_INIT;
    const Use<mscclc_plan> use(plan);
    if (!use || call == nullptr || !take_struct(call, own)) {
      return use.refuse("mscclc_plan_launch",
                        "'plan' is not a plan, or 'call' is not of this version");
    }
    if (*plan->finalized) return refuse_finalized("mscclc_plan_launch");
    const auto types = static_cast<int32_t>(dtype_table().size());
    const bool typed = own.dtype >= 0 && own.dtype < types &&
                       own.accumulate >= MSCCLC_DTYPE_DEFAULT && own.accumulate < types;
    if (!typed || own.op < MSCCLC_SUM || own.op > MSCCLC_AVG) {
      return refuse("mscclc_plan_launch", "a type or the reduction of the call is unknown");
    }
    if (const char* why = why_no_stream(plan->device, stream)) {
      return refuse("mscclc_plan_launch", why);
    }
    const auto externals = externals_of(own);
    if (!externals) return refuse("mscclc_plan_launch", externals.error().text().c_str());
    const auto flags = flags_of(own);
    if (!flags) return refuse("mscclc_plan_launch", flags.error().text().c_str());
    CollectiveCall options{.bytes = bytes,
                           .dtype = static_cast<Dtype>(own.dtype),
                           .op = static_cast<ReduceOp>(own.op),
                           .input = own.input,
                           .output = own.output,
                           .registered = own.registered != 0,
                           .externals = *externals,
                           .flags = *flags,
                           .budget = own.budget,
                           .launch_order = static_cast<LaunchOrder>(own.launch_order)};
    if (own.accumulate != MSCCLC_DTYPE_DEFAULT) {
      options.accumulate = static_cast<Dtype>(own.accumulate);
    }
    Diagnostics diagnostics;
    const BoundCall bound = bind(*plan, options, diagnostics);
    return bound && plan->executable->launch(bound, stream, diagnostics)
               ? mscclc_result_t{MSCCLC_SUCCESS}
               : fail(diagnostics);
  });
}

mscclc_result_t mscclc_plan_destroy(mscclc_plan_t* plan) {
  return guarded([&] {
    if (plan == nullptr) return mscclc_result_t{MSCCLC_SUCCESS};
    std::shared_ptr<OneThread> one_thread;
    {
      const Use<mscclc_plan> use(plan);
      if (!use) return use.refuse("mscclc_plan_destroy", "'plan' is not a plan");
      one_thread = plan->one_thread;
    }
    Diagnostics diagnostics;
    const OneThread::Visit visit(*one_thread, diagnostics);
    return visit ? destroy(plan, "mscclc_plan_destroy", "'plan' is not a plan") : fail(diagnostics);
  });
}
