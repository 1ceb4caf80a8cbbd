#include "tests/gpu/others/nccl_sum.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace mscclc::testing {

// NCCL's C interface (nccl.h, version 2).
struct NcclUniqueId {
  char internal[128];
};
constexpr int kFloat = 7, kSum = 0;

struct NcclSum::Library {
  int (*get_unique_id)(NcclUniqueId*);
  int (*comm_init_rank)(void**, int, NcclUniqueId, int);
  int (*comm_abort)(void*);
  int (*all_reduce)(const void*, void*, size_t, int, int, void*, void*);

  /// What is missing.
  std::optional<Error> load() {
    const char* named = std::getenv("MSCCLC_NCCL");
    void* handle = dlopen(named != nullptr ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return Error{dlerror()};
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      return function != nullptr;
    };
    if (find(get_unique_id, "ncclGetUniqueId") && find(comm_init_rank, "ncclCommInitRank") &&
        find(comm_abort, "ncclCommAbort") && find(all_reduce, "ncclAllReduce")) {
      return std::nullopt;
    }
    return Error{"it lacks a function"};
  }
};

Result<std::unique_ptr<NcclSum>> NcclSum::make(Communicator& communicator) {
  std::unique_ptr<NcclSum> made(new NcclSum);
  made->library_ = std::make_unique<Library>();
  std::optional<Error> why = made->library_->load();
  NcclUniqueId id = {};
  if (!why && communicator.rank() == 0 && made->library_->get_unique_id(&id) != 0) {
    why = Error{"it makes no id"};
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(&id);
  std::vector<std::vector<uint8_t>> all;
  Diagnostics diagnostics;
  const size_t given = why ? 0 : sizeof id;
  if (!communicator.bootstrap().all_gather({bytes, given}, "NCCL's id", all, diagnostics)) {
    return Error{"the ranks could not talk"};
  }
  for (const std::vector<uint8_t>& message : all) {
    if (message.size() != sizeof id && !why) why = Error{"another rank has none"};
  }
  if (why) return *std::move(why);
  std::memcpy(&id, all[0].data(), sizeof id);
  if (made->library_->comm_init_rank(&made->comm_, static_cast<int>(communicator.size()), id,
                                     static_cast<int>(communicator.rank())) != 0) {
    return Error{"it makes no communicator"};
  }
  return made;
}

// Aborted, not destroyed: that would wait for ranks which may have given up.
NcclSum::~NcclSum() {
  if (comm_ != nullptr) library_->comm_abort(comm_);
}

bool NcclSum::launch(void* data, size_t count, StreamHandle stream) {
  return library_->all_reduce(data, data, count, kFloat, kSum, comm_, stream) == 0;
}

}  // namespace mscclc::testing
