#include "runtime/doors/nccl/comm/profiler.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdarg>
#include <cstdio>

#include "runtime/doors/nccl/backends/report.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/process/open_library.h"

namespace mscclc::nccl {
namespace {

using namespace profiler_abi;

constexpr uint64_t kOfApi = kGroupApi | kCollApi | kP2pApi | kKernelLaunch;
constexpr int kLevelWarn = 2;

/// Where a plug-in's lines go.
__attribute__((format(printf, 5, 6))) void log_of_plugin(int level, unsigned long /*flags*/,
                                                         const char* /*file*/, int /*line*/,
                                                         const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  inform(level <= kLevelWarn ? Subsystem::env : Subsystem::init, -1, text);
}

/// The library of this name, or libnccl-profiler-NAME.so. nullptr: there is none.
void* open_plugin(const std::string& name) {
  if (is_no_file(name)) return nullptr;
  if (void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  if (name.find('/') != name.npos) return nullptr;
  return ::dlopen(fmt::format("libnccl-profiler-{}.so", name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

std::unique_ptr<Profiler> Profiler::create(const ProfiledComm& comm) {
  Diagnostics ignored;
  const std::string name =
      Environment::of_process().text(Variable::NCCL_PROFILER_PLUGIN, ignored).value_or("");
  if (name.empty() || name == "none") return nullptr;
  const auto say = [&](const std::string& text) {
    inform(Subsystem::init, comm.ordinal, fmt::format("profiler plug-in {}: {}", name, text));
    return nullptr;
  };
  void* const library = open_plugin(name);
  if (library == nullptr) return say("cannot be loaded");
  std::unique_ptr<Profiler> made(new Profiler);
  made->rank_ = comm.rank;
  Plugin& plugin = made->plugin_;
  for (const char* symbol : {"ncclProfiler_v5", "ncclProfiler_v6", "ncclProfiler_v7"}) {
    const auto* const found = static_cast<const Plugin*>(::dlsym(library, symbol));
    if (found != nullptr) plugin = *found;
  }
  made->knows_api_ = plugin.init != nullptr;
  int result = 0;
  if (made->knows_api_) {
    result = plugin.init(&made->context_, comm.id, &made->mask_, comm.name.c_str(), comm.nodes,
                         comm.ranks, comm.rank, log_of_plugin);
  } else if (const auto* v4 = static_cast<const PluginV4*>(::dlsym(library, "ncclProfiler_v4"))) {
    plugin = {v4->name,    nullptr, v4->start_event, v4->stop_event, v4->record_event_state,
              v4->finalize};
    result = v4->init(&made->context_, &made->mask_, comm.name.c_str(), comm.id, comm.nodes,
                      comm.ranks, comm.rank, log_of_plugin);
  } else {
    return say("has no interface of version 4 to 7");
  }
  if (result != 0) {
    made->context_ = nullptr;
    return say(fmt::format("its init fails with {}", result));
  }
  say("will see the calls that plans serve");
  return made;
}

Profiler::~Profiler() {
  if (context_ != nullptr) (void)plugin_.finalize(context_);
}

bool Profiler::wants(uint64_t bits) const {
  const auto mask = static_cast<uint64_t>(__atomic_load_n(&mask_, __ATOMIC_RELAXED));
  return (mask & bits) != 0;
}

void* Profiler::start(Event& event, uint64_t wanted_for) {
  if (!wants(wanted_for) || (!knows_api_ && (event.type & kOfApi) != 0)) return nullptr;
  event.rank = rank_;
  void* handle = nullptr;
  return plugin_.start_event(context_, &handle, &event) == 0 ? handle : nullptr;
}

void Profiler::stop(void* handle) {
  if (handle != nullptr) (void)plugin_.stop_event(handle);
}

GroupEvents::GroupEvents(Profiler& profiler, bool captured) : profiler_(profiler) {
  Event event{};
  event.type = kGroupApi;
  event.group_api.captured = captured;
  event.group_api.depth = 1;
  api_ = profiler_.start(event, kOfApi | kGroup | kColl | kP2p);
  if (api_ != nullptr) {
    (void)profiler_.plugin_.record_event_state(api_, kGroupStartApiStop, nullptr);
    (void)profiler_.plugin_.record_event_state(api_, kGroupEndApiStart, nullptr);
  }
  event = {};
  event.type = kGroup;
  group_ = profiler_.start(event, kGroup | kColl | kP2p);
}

GroupEvents::~GroupEvents() {
  profiler_.stop(group_);
  profiler_.stop(api_);
}

CallEvents::CallEvents(GroupEvents& group, const ProfiledCall& call) : profiler_(group.profiler_) {
  Event api{}, own{}, launch{};
  if (call.is_message) {
    api.type = kP2pApi;
    api.p2p_api = {call.function, call.count, call.datatype, call.stream, call.captured, call.tag};
    own.type = kP2p;
    void* const buffer = call.receive != nullptr ? call.receive : const_cast<void*>(call.send);
    own.p2p = {call.function, buffer, call.datatype, call.count,
               call.root,     0,      group.group_,  call.tag};
  } else {
    api.type = kCollApi;
    api.coll_api = {call.function, call.count,    call.datatype, call.root,
                    call.stream,   call.captured, call.tag};
    own.type = kColl;
    own.coll = {profiler_.numbers_.at(call.kind)++,
                call.function,
                call.send,
                call.receive,
                call.count,
                call.root,
                call.datatype,
                0,
                0,
                call.plan,
                "plan",
                group.group_,
                nullptr,
                false,
                call.tag};
  }
  api.parent = group.api_;
  api_ = profiler_.start(api, api.type | own.type);
  own.parent = profiler_.knows_api_ ? api_ : group.group_;
  call_ = profiler_.start(own, own.type);
  launch.type = kKernelLaunch;
  launch.parent = group.api_;
  launch.kernel_launch.stream = call.stream;
  launch_ = profiler_.start(launch, kKernelLaunch);
}

CallEvents::~CallEvents() {
  profiler_.stop(launch_);
  profiler_.stop(call_);
  profiler_.stop(api_);
}

}  // namespace mscclc::nccl
