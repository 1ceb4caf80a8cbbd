// Communicators: how ranks meet, part, and end.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "ir/diagnostics/first_message.h"
#include "ir/diagnostics/printable.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/gpu.h"
#include "runtime/api/host_device.h"
#include "runtime/api/launcher.h"
#include "runtime/doors/c/errors.h"
#include "runtime/doors/c/handles.h"
#include "runtime/doors/c/orders.h"
#include "runtime/doors/c/ranges.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/fd.h"
#include "runtime/support/host_place.h"

namespace mscclc::capi {

std::shared_ptr<Device> open_device(int32_t device, Diagnostics& diagnostics) {
  if (device == MSCCLC_HOST) return make_host_device(diagnostics);
  return cuda::open_gpu(device, diagnostics);
}

namespace {

/// What a rank needs besides the others.
struct Part {
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  std::shared_ptr<PlanRegistry> registry;
  std::chrono::milliseconds timeout{0};
  bool able = true;  ///< False: the rank meets the others nonetheless, so that they fail with it.

  /// `given` may be NULL. `usual`: the registry where it names none; nullptr: the process's.
  void read(const mscclc_config_t* given, Diagnostics& diagnostics,
            const std::shared_ptr<PlanRegistry>& usual = nullptr) {
    able = take(given, usual, diagnostics);
    const auto limit = config.timeout_ms > 0 ? std::chrono::milliseconds(config.timeout_ms)
                                             : Environment::of_process().timeout(diagnostics);
    Diagnostics wrong;  // the same
    timeout = limit ? *limit : host_options_to_meet(wrong).timeout;
    able = able && limit;
  }

 private:
  bool take(const mscclc_config_t* given, const std::shared_ptr<PlanRegistry>& usual,
            Diagnostics& diagnostics) {
    if (given != nullptr && !take_struct(given, config)) {
      diagnostics.error("bad-call", {}, "the config has no size that this version knows");
      return false;
    }
    mscclc_registry* const named = std::exchange(config.registry, nullptr);
    if (!is_order(config.order)) {
      diagnostics.error("bad-call", {}, "the config's 'order' is unknown");
      return false;
    }
    if (named == nullptr) {
      registry = usual != nullptr ? usual : default_registry(diagnostics);
    } else if (const Use<mscclc_registry> use(named); use) {
      registry = named->plans;
    } else {
      diagnostics.error("bad-call", {}, "the config's 'registry' is not a registry");
    }
    return registry != nullptr;
  }
};

/// Collective, of ranks that have met.
mscclc_result_t finish(std::unique_ptr<Bootstrap> bootstrap, Part part, mscclc_comm_t** comm,
                       Diagnostics& diagnostics) {
  if (bootstrap == nullptr) return fail(diagnostics);
  auto made = std::make_unique<mscclc_comm>();
  // nullptr: all ranks learn it
  made->device = part.able ? open_device(part.config.device, diagnostics) : nullptr;
  made->registry = std::move(part.registry);
  made->config = part.config;
  made->communicator = Communicator::create(
      std::move(bootstrap), made->device,
      {.timeout = part.timeout, .ends_process = part.config.ends_process != 0}, diagnostics);
  if (made->communicator == nullptr) return fail(diagnostics);
  made->collectives = Collectives::create(*made->communicator, made->registry,
                                          {.ready_bytes = part.config.ready_bytes,
                                           .order = order_of(part.config.order),
                                           .beside = part.config.beside},
                                          diagnostics);
  if (made->collectives == nullptr) return fail(diagnostics);
  *comm = Handles<mscclc_comm>::add(std::move(made));
  return MSCCLC_SUCCESS;
}

/// An id of this process, which serves it; ranks wait for one another as long as the environment
/// says, or `timeout`. nullopt: reported.
std::optional<std::string> make_id(bool one_machine,
                                   std::optional<std::chrono::milliseconds> timeout,
                                   Diagnostics& diagnostics) {
  raise_descriptor_limit();
  auto options = read_host_options(diagnostics);
  if (!options) return std::nullopt;
  options->one_machine = one_machine;
  options->timeout = timeout.value_or(options->timeout);
  auto job = host_job(*options, diagnostics);
  if (!job) return std::nullopt;
  const std::string text = job->id.text();
  keep_hub(job->id, std::move(job->hub));
  return text;
}

/// `gives_up`: as join_job() takes it.
mscclc_result_t join(const std::string& id, uint32_t rank, uint32_t ranks, Part part,
                     mscclc_comm_t** comm, Diagnostics& diagnostics,
                     std::function<bool(Diagnostics&)> gives_up = nullptr) {
  raise_descriptor_limit();
  Diagnostics no_id;  // of which a config that is wrong, too, is the error
  const auto parsed = UniqueId::parse(id, part.able ? diagnostics : no_id);
  if (!parsed) return fail(diagnostics);
  auto bootstrap = join_job(*parsed, rank, ranks, part.timeout, own_hub(*parsed), diagnostics,
                            std::move(gives_up));
  return finish(std::move(bootstrap), std::move(part), comm, diagnostics);
}

bool check_ranks(uint32_t rank, uint32_t ranks, Diagnostics& diagnostics) {
  if (rank < ranks) return true;
  diagnostics.error("bad-call", {}, fmt::format("rank {} of {} ranks", rank, ranks));
  return false;
}

/// In the place of an id that could not be made, before why not.
constexpr const char* kNoId = "no id: ";

/// The caller's store, with a name before its keys.
class Store {
 public:
  Store(const mscclc_store_t& store, const std::string& name, std::chrono::milliseconds timeout)
      : store_(store), key_("mscclc/" + name + "/id"), timeout_(timeout) {}

  bool put_id(const std::string& id, Diagnostics& diagnostics) const {
    if (store_.set(store_.user, key_.c_str(), id.data(), id.size()) == 0) return true;
    diagnostics.error("bootstrap-gone", {}, fmt::format("the store does not take '{}'", key_));
    return false;
  }
  /// Instead of an id that could not be made, as the others wait for one.
  void put_why_not(const Diagnostics& why) const {
    Diagnostics ignored;  // this rank fails in any case
    (void)put_id((kNoId + first_message(why)).substr(0, UniqueId::kMaxText), ignored);
  }
  std::optional<std::string> get_id(Diagnostics& diagnostics) const {
    std::string id(UniqueId::kMaxText, '\0');
    size_t bytes = id.size();
    const auto most = static_cast<uint32_t>(std::min<int64_t>(timeout_.count(), UINT32_MAX));
    if (store_.get(store_.user, key_.c_str(), id.data(), &bytes, most) == 0) {
      id.resize(std::min(bytes, id.size()));  // so much is too long for an id
      if (!id.starts_with(kNoId)) return id;
      diagnostics.error("peer-failed", {}, "rank 0 has made " + printable_line(id));
      return std::nullopt;
    }
    diagnostics.error(
        "bootstrap-timeout", {},
        fmt::format("the store has no '{}' within {} ms; rank 0 puts it there", key_, most));
    return std::nullopt;
  }
  /// What join_job() takes.
  std::function<bool(Diagnostics&)> gives_up() const {
    if (store_.given_up == nullptr) return nullptr;
    return [this](Diagnostics& why) {
      if (store_.given_up(store_.user) == 0) return false;
      why.error("aborted", {}, "this rank waits no longer: its store says that it has given up");
      return true;
    };
  }
  void forget() const {
    if (store_.remove != nullptr) (void)store_.remove(store_.user, key_.c_str());
  }

 private:
  const mscclc_store_t& store_;
  const std::string key_;
  const std::chrono::milliseconds timeout_;
};

mscclc_result_t meet_by_store(const Store& store, uint32_t rank, uint32_t ranks, Part part,
                              mscclc_comm_t** comm, Diagnostics& diagnostics) {
  const auto id = rank == 0 ? make_id(false, part.timeout, diagnostics) : store.get_id(diagnostics);
  if (!id && rank == 0) store.put_why_not(diagnostics);
  if (!id || (rank == 0 && !store.put_id(*id, diagnostics))) return fail(diagnostics);
  const mscclc_result_t result =
      join(*id, rank, ranks, std::move(part), comm, diagnostics, store.gives_up());
  if (rank == 0) store.forget();  // all have come, or none will
  return result;
}

/// What a rank says when a communicator is split; where it cannot take part, why follows.
struct Wish {
  int32_t color, key;
  uint32_t able;
  HostPlace place;
};
std::string why_of(const Diagnostics& unable) { return first_message(unable).substr(0, 500); }

std::vector<uint8_t> wish_of(int32_t color, int32_t key, const std::optional<HostPlace>& place,
                             const Diagnostics& unable) {
  const Wish wish{color, key, unable.has_errors() ? 0u : 1u, place.value_or(HostPlace())};
  const auto* bytes = reinterpret_cast<const uint8_t*>(&wish);
  std::vector<uint8_t> message(bytes, bytes + sizeof wish);
  const std::string why = wish.able != 0 ? "" : why_of(unable);
  message.insert(message.end(), why.begin(), why.end());
  return message;
}

/// The ranks of one color, in the child's order.
struct Family {
  std::vector<uint32_t> ranks;
  bool one_place = true;
  std::string unable;  ///< which of them cannot take part, and why; "": all can
};

std::optional<Family> family_of(const std::vector<std::vector<uint8_t>>& messages, uint32_t rank,
                                Diagnostics& diagnostics) {
  std::vector<Wish> wishes(messages.size());
  for (size_t r = 0; r < messages.size(); ++r) {
    if (messages[r].size() < sizeof(Wish)) {
      diagnostics.error("bad-message", {}, fmt::format("the message of rank {} has no color", r));
      return std::nullopt;
    }
    std::memcpy(&wishes[r], messages[r].data(), sizeof(Wish));
  }
  Family family;
  for (uint32_t r = 0; r < wishes.size(); ++r) {
    if (wishes[r].color != wishes[rank].color) continue;
    family.ranks.push_back(r);
    family.one_place &= wishes[r].place == wishes[rank].place;
    if (wishes[r].able == 0 && family.unable.empty()) {
      const std::string why(messages[r].begin() + sizeof(Wish), messages[r].end());
      family.unable = fmt::format("rank {} of the parent: {}", r, printable_line(why));
    }
  }
  std::stable_sort(family.ranks.begin(), family.ranks.end(),
                   [&](uint32_t a, uint32_t b) { return wishes[a].key < wishes[b].key; });
  return family;
}

mscclc_result_t split(mscclc_comm& parent, int32_t color, int32_t key, Part part,
                      mscclc_comm_t** child, Diagnostics& diagnostics) {
  const OneThread::Visit visit(*parent.communicator->one_thread(), diagnostics);
  if (!visit || parent.communicator->has_failed(diagnostics)) return fail(diagnostics);
  Bootstrap& bootstrap = parent.communicator->bootstrap();
  Diagnostics unplaced;
  const auto place = this_host_place(unplaced);
  const auto wish = wish_of(color, key, place, part.able ? unplaced : diagnostics);
  std::vector<std::vector<uint8_t>> messages;
  if (!bootstrap.all_gather(wish, "split", messages, diagnostics)) return fail(diagnostics);
  const auto family = family_of(messages, bootstrap.rank(), diagnostics);
  if (!family) return fail(diagnostics);
  const bool complete = family->unable.empty();
  const bool first = color >= 0 && complete && family->ranks.front() == bootstrap.rank();
  std::optional<std::string> made;
  if (first) made = make_id(family->one_place, part.timeout, diagnostics);
  const std::string own = first && !made ? kNoId + why_of(diagnostics) : made.value_or("");
  part.able = part.able && made.has_value() == first;
  const auto* text = reinterpret_cast<const uint8_t*>(own.data());
  if (!bootstrap.all_gather({text, own.size()}, "exchange ids of a split", messages, diagnostics)) {
    return fail(diagnostics);
  }
  if (!part.able) return fail(diagnostics);
  if (color < 0) return MSCCLC_SUCCESS;
  if (!place) return fail(unplaced);
  if (!complete) {
    diagnostics.error("peer-failed", {}, family->unable);
    return fail(diagnostics);
  }
  const std::vector<uint8_t>& said = messages[family->ranks.front()];
  const std::string id(said.begin(), said.end());
  if (id.starts_with(kNoId)) {
    diagnostics.error("peer-failed", {},
                      fmt::format("rank {} of the parent has made {}", family->ranks.front(),
                                  printable_line(id)));
    return fail(diagnostics);
  }
  const auto at = std::find(family->ranks.begin(), family->ranks.end(), bootstrap.rank());
  return join(id, static_cast<uint32_t>(at - family->ranks.begin()),
              static_cast<uint32_t>(family->ranks.size()), std::move(part), child, diagnostics,
              [&parent](Diagnostics& why) { return parent.communicator->has_failed(why); });
}

}  // namespace
}  // namespace mscclc::capi

using namespace mscclc;
using namespace mscclc::capi;

mscclc_result_t mscclc_unique_id(mscclc_unique_id_t* id) {
  return guarded([&] {
    if (id == nullptr) return refuse("mscclc_unique_id", "'id' is NULL");
    Diagnostics diagnostics;
    const auto text = make_id(false, std::nullopt, diagnostics);
    if (!text) return fail(diagnostics);
    *id = {};
    text->copy(id->text, sizeof id->text - 1);
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_comm_create(mscclc_comm_t** comm, uint32_t ranks,
                                   const mscclc_unique_id_t* id, uint32_t rank,
                                   const mscclc_config_t* config) {
  return guarded([&] {
    const NvtxRange range = range_of("mscclc_comm_create");
    if (comm == nullptr) return refuse("mscclc_comm_create", "'comm' is NULL");
    *comm = nullptr;
    if (id == nullptr) return refuse("mscclc_comm_create", "'id' is NULL");
    Diagnostics diagnostics;
    Part part;
    if (!check_ranks(rank, ranks, diagnostics)) return fail(diagnostics);
    part.read(config, diagnostics);
    const std::string text(id->text, strnlen(id->text, sizeof id->text));
    return join(text, rank, ranks, std::move(part), comm, diagnostics);
  });
}

mscclc_result_t mscclc_comm_create_env(mscclc_comm_t** comm, const char* name,
                                       const mscclc_config_t* config) {
  return guarded([&] {
    const NvtxRange range = range_of("mscclc_comm_create_env");
    if (comm == nullptr) return refuse("mscclc_comm_create_env", "'comm' is NULL");
    raise_descriptor_limit();
    *comm = nullptr;
    Diagnostics diagnostics;
    Part part;
    part.read(config, diagnostics);
    auto launched = read_launch(name == nullptr ? "" : name, diagnostics);
    if (!launched) return fail(diagnostics);
    launched->timeout = part.timeout;
    if (!part.able) launched->wrong = {};  // the communicator reports it, with what else is wrong
    return finish(make_bootstrap(*launched, diagnostics), std::move(part), comm, diagnostics);
  });
}

mscclc_result_t mscclc_comm_create_store(mscclc_comm_t** comm, uint32_t ranks, uint32_t rank,
                                         const mscclc_store_t* store, const char* name,
                                         const mscclc_config_t* config) {
  constexpr auto kHere = "mscclc_comm_create_store";
  return guarded([&] {
    const NvtxRange range = range_of(kHere);
    if (comm == nullptr) return refuse(kHere, "'comm' is NULL");
    *comm = nullptr;
    mscclc_store_t own = MSCCLC_STORE_INIT;
    if (store == nullptr || !take_struct(store, own)) return refuse(kHere, "there is no store");
    if (own.set == nullptr || own.get == nullptr)
      return refuse(kHere, "the store cannot set or get");
    if (name == nullptr || strnlen(name, 201) > 200) {
      return refuse(kHere, "'name' is NULL, or longer than 200 bytes");
    }
    Diagnostics diagnostics;
    Part part;
    if (!check_ranks(rank, ranks, diagnostics)) return fail(diagnostics);
    part.read(config, diagnostics);
    const Store keys(own, name, part.timeout);
    return meet_by_store(keys, rank, ranks, std::move(part), comm, diagnostics);
  });
}

mscclc_result_t mscclc_comm_split(mscclc_comm_t* comm, int32_t color, int32_t key,
                                  mscclc_comm_t** child, const mscclc_config_t* config) {
  return guarded([&] {
    const NvtxRange range = range_of("mscclc_comm_split");
    if (child != nullptr) *child = nullptr;
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_comm_split", "'comm' is not a communicator");
    if (*comm->finalized) return refuse_finalized("mscclc_comm_split");
    Diagnostics diagnostics;
    Part part;
    part.read(config == nullptr ? &comm->config : config, diagnostics, comm->registry);
    if (child != nullptr) return split(*comm, color, key, std::move(part), child, diagnostics);
    part.able = false;  // all ranks of the child learn it
    mscclc_comm_t* none = nullptr;
    diagnostics.error("bad-call", {}, "'child' is NULL");
    (void)split(*comm, color, key, std::move(part), &none, diagnostics);
    return refuse("mscclc_comm_split", "'child' is NULL");
  });
}

mscclc_result_t mscclc_comm_rank(const mscclc_comm_t* comm, uint32_t* rank) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use || rank == nullptr) {
      return use.refuse("mscclc_comm_rank", "'comm' is not a communicator, or 'rank' is NULL");
    }
    *rank = comm->communicator->rank();
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_comm_size(const mscclc_comm_t* comm, uint32_t* ranks) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use || ranks == nullptr) {
      return use.refuse("mscclc_comm_size", "'comm' is not a communicator, or 'ranks' is NULL");
    }
    *ranks = comm->communicator->size();
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_comm_device(const mscclc_comm_t* comm, int32_t* device) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use || device == nullptr) {
      return use.refuse("mscclc_comm_device", "'comm' is not a communicator, or 'device' is NULL");
    }
    *device = comm->config.device;
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_comm_async_error(const mscclc_comm_t* comm) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_comm_async_error", "'comm' is not a communicator");
    Diagnostics diagnostics;
    if (!comm->communicator->has_failed(diagnostics)) return mscclc_result_t{MSCCLC_SUCCESS};
    return fail(diagnostics);
  });
}

mscclc_result_t mscclc_comm_abort(mscclc_comm_t* comm, const char* why) {
  return guarded([&] {
    const NvtxRange range = range_of("mscclc_comm_abort");
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_comm_abort", "'comm' is not a communicator");
    comm->communicator->abort(std::string(why == nullptr ? "aborted" : why));
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_comm_finalize(mscclc_comm_t* comm) {
  return guarded([&] {
    const NvtxRange range = range_of("mscclc_comm_finalize");
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_comm_finalize", "'comm' is not a communicator");
    Diagnostics diagnostics;
    const OneThread::Visit visit(*comm->communicator->one_thread(), diagnostics);
    if (!visit) return fail(diagnostics);
    if (comm->finalized->exchange(true)) {
      return fail(MSCCLC_INVALID_USAGE, "mscclc_comm_finalize: it was called before");
    }
    const bool ended = comm->device->drain(diagnostics);
    return comm->communicator->check(diagnostics) && ended ? mscclc_result_t{MSCCLC_SUCCESS}
                                                           : fail(diagnostics);
  });
}

mscclc_result_t mscclc_comm_destroy(mscclc_comm_t* comm) {
  return guarded([&] {
    const NvtxRange range = range_of("mscclc_comm_destroy");
    return destroy(comm, "mscclc_comm_destroy", "'comm' is not a communicator");
  });
}
