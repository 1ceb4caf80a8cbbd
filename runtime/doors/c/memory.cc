// Memory, registrations and streams.
#include <thread>

#include "runtime/doors/c/errors.h"
#include "runtime/doors/c/handles.h"

using namespace mscclc;
using namespace mscclc::capi;

namespace {

constexpr const char* kNoComm = "'comm' is not a communicator";
constexpr const char* kNoMemory = "'memory' is not memory of mscclc";

mscclc_result_t result(bool done, const Diagnostics& diagnostics) {
  return done ? mscclc_result_t{MSCCLC_SUCCESS} : fail(diagnostics);
}

}  // namespace

mscclc_result_t mscclc_memory_create(mscclc_comm_t* comm, size_t bytes, mscclc_memory_t** memory) {
  return guarded([&] {
    if (memory == nullptr) return refuse("mscclc_memory_create", "'memory' is NULL");
    *memory = nullptr;
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_memory_create", kNoComm);
    Diagnostics diagnostics;
    const OneThread::Visit visit(*comm->communicator->one_thread(), diagnostics);
    if (!visit) return fail(diagnostics);
    auto made = std::make_unique<mscclc_memory>();
    made->device = comm->device;
    made->memory = comm->device->allocate(bytes, "memory of the application", diagnostics);
    if (made->memory == nullptr) return fail(diagnostics);
    *memory = Handles<mscclc_memory>::add(std::move(made));
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

void* mscclc_memory_address(const mscclc_memory_t* memory) {
  const Use<mscclc_memory> use(memory);
  return use ? memory->memory->data() : nullptr;
}

size_t mscclc_memory_bytes(const mscclc_memory_t* memory) {
  const Use<mscclc_memory> use(memory);
  return use ? memory->memory->bytes() : 0;
}

mscclc_result_t mscclc_memory_retain(mscclc_memory_t* memory) {
  return guarded([&] {
    const Use<mscclc_memory> use(memory);
    if (!use) return use.refuse("mscclc_memory_retain", kNoMemory);
    ++memory->owners;
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_memory_release(mscclc_memory_t* memory) {
  return guarded([&] {
    if (memory == nullptr) return mscclc_result_t{MSCCLC_SUCCESS};
    {
      const Use<mscclc_memory> use(memory);
      if (!use) return use.refuse("mscclc_memory_release", kNoMemory);
      if (--memory->owners > 0) return mscclc_result_t{MSCCLC_SUCCESS};
    }
    // Functions that any thread may call may be inside for a moment.
    std::unique_ptr<mscclc_memory> last;
    while (Handles<mscclc_memory>::take(memory, last) == Known::yes && last == nullptr) {
      std::this_thread::yield();
    }
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_write(mscclc_comm_t* comm, void* to, const void* from, size_t bytes) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_write", kNoComm);
    if (bytes > 0 && (to == nullptr || from == nullptr)) {
      return refuse("mscclc_write", "'to' or 'from' is NULL");
    }
    Diagnostics diagnostics;
    const OneThread::Visit visit(*comm->communicator->one_thread(), diagnostics);
    if (!visit) return fail(diagnostics);
    return result(comm->device->write(to, from, bytes, diagnostics), diagnostics);
  });
}

mscclc_result_t mscclc_read(mscclc_comm_t* comm, void* to, const void* from, size_t bytes) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_read", kNoComm);
    if (bytes > 0 && (to == nullptr || from == nullptr)) {
      return refuse("mscclc_read", "'to' or 'from' is NULL");
    }
    Diagnostics diagnostics;
    const OneThread::Visit visit(*comm->communicator->one_thread(), diagnostics);
    if (!visit) return fail(diagnostics);
    return result(comm->device->read(to, from, bytes, diagnostics), diagnostics);
  });
}

mscclc_result_t mscclc_register(mscclc_comm_t* comm, void* address, size_t bytes,
                                uint64_t* registration) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_register", kNoComm);
    if (*comm->finalized) return refuse_finalized("mscclc_register");
    Diagnostics diagnostics;
    if (registration == nullptr || (address == nullptr && bytes > 0)) {
      (void)comm->collectives->register_buffer(nullptr, 1, diagnostics);  // all ranks learn it
      return refuse("mscclc_register", "'address' or 'registration' is NULL");
    }
    const auto number = comm->collectives->register_buffer(address, bytes, diagnostics);
    *registration = number.value_or(0);
    return result(number.has_value(), diagnostics);
  });
}

mscclc_result_t mscclc_registered_address(mscclc_comm_t* comm, uint64_t registration, uint32_t rank,
                                          void** address, size_t* bytes) {
  return guarded([&] {
    if (address == nullptr || bytes == nullptr) {
      return refuse("mscclc_registered_address", "'address' or 'bytes' is NULL");
    }
    *address = nullptr;
    *bytes = 0;
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_registered_address", kNoComm);
    Diagnostics diagnostics;
    const auto found = comm->collectives->registered(registration, rank, diagnostics);
    if (!found) return fail(diagnostics);
    *address = found->address;
    *bytes = found->bytes;
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_deregister(mscclc_comm_t* comm, uint64_t registration) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_deregister", kNoComm);
    Diagnostics diagnostics;
    return result(comm->collectives->deregister_buffer(registration, diagnostics), diagnostics);
  });
}

mscclc_result_t mscclc_stream_create(mscclc_comm_t* comm, mscclc_stream_t* stream) {
  return guarded([&] {
    if (stream == nullptr) return refuse("mscclc_stream_create", "'stream' is NULL");
    *stream = nullptr;
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_stream_create", kNoComm);
    Diagnostics diagnostics;
    const OneThread::Visit visit(*comm->communicator->one_thread(), diagnostics);
    if (!visit) return fail(diagnostics);
    *stream = comm->device->create_stream(diagnostics);
    return result(*stream != nullptr, diagnostics);
  });
}

mscclc_result_t mscclc_stream_destroy(mscclc_comm_t* comm, mscclc_stream_t stream) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_stream_destroy", kNoComm);
    if (stream == nullptr) return mscclc_result_t{MSCCLC_SUCCESS};
    if (const char* why = why_no_stream(comm->config.device, stream)) {
      return refuse("mscclc_stream_destroy", why);
    }
    Diagnostics diagnostics;
    const OneThread::Visit visit(*comm->communicator->one_thread(), diagnostics);
    if (!visit) return fail(diagnostics);
    comm->device->destroy_stream(stream);
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_stream_synchronize(mscclc_comm_t* comm, mscclc_stream_t stream) {
  return guarded([&] {
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_stream_synchronize", kNoComm);
    if (const char* why = why_no_stream(comm->config.device, stream)) {
      return refuse("mscclc_stream_synchronize", why);
    }
    Diagnostics diagnostics;
    return result(comm->communicator->synchronize(stream, diagnostics), diagnostics);
  });
}

mscclc_result_t mscclc_stream_mark(mscclc_comm_t* comm, mscclc_stream_t stream, uint64_t* mark,
                                   uint64_t* reached) {
  return guarded([&] {
    if (mark == nullptr || reached == nullptr) {
      return refuse("mscclc_stream_mark", "'mark' or 'reached' is NULL");
    }
    *mark = *reached = 0;
    const Use<mscclc_comm> use(comm);
    if (!use) return use.refuse("mscclc_stream_mark", kNoComm);
    if (const char* why = why_no_stream(comm->config.device, stream)) {
      return refuse("mscclc_stream_mark", why);
    }
    Diagnostics diagnostics;
    const OneThread::Visit visit(*comm->communicator->one_thread(), diagnostics);
    if (!visit) return fail(diagnostics);
    StreamMarks& marks = comm->marks[stream];
    std::unique_ptr<StreamMark> next;  // one that is not in use any more
    for (; !marks.open.empty() && marks.open.front()->reached(); ++marks.reached) {
      next = std::move(marks.open.front());
      marks.open.pop_front();
    }
    *reached = marks.reached;
    if (comm->device->is_capturing(stream)) return mscclc_result_t{MSCCLC_SUCCESS};
    if (!comm->device->mark(stream, next, diagnostics)) return fail(diagnostics);
    marks.open.push_back(std::move(next));
    *mark = ++marks.last;
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}
