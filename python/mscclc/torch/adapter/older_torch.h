// What older versions of torch lack.
#pragma once

#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <dlfcn.h>

#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

namespace mscclc::torch_adapter {

/// The stream as CUDA knows it. torch 2.8 says only which one is the current one, by its C
/// interface, which is there where GPUs are.
template <class Stream>
void* native_handle_of(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    using Current = int (*)(int device, void** stream);
    static const auto current = reinterpret_cast<Current>(dlsym(
        dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD), "aoti_torch_get_current_cuda_stream"));
    TORCH_CHECK(current != nullptr, "mscclc: this torch does not say what its streams are");
    const c10::StreamGuard guard(stream);
    void* handle = nullptr;
    TORCH_CHECK(current(stream.device_index(), &handle) == 0, "mscclc: there is no stream");
    return handle;
  }
}

template <class Backend>
concept Splits = requires {
  static_cast<c10::intrusive_ptr<Backend> (Backend::*)(
      const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
      const c10::intrusive_ptr<typename Backend::Options>& options)>(&Backend::split);
};
/// Whether split_group() asks backends for parts of groups, in the way of torch 2.11.
constexpr bool kTorchSplits = Splits<c10d::Backend>;

/// The name of the group that options are of: "" with torch 2.8, whose backends split no groups.
std::string group_name_of(const auto& options) {
  if constexpr (requires { options.group_name; }) return options.group_name;
  return "";
}

/// The store of a group.
template <class Group>
c10::intrusive_ptr<c10d::Store> store_of(Group& group) {
  if constexpr (requires { group.getStore(); }) {
    return group.getStore();
  } else {
    struct Opened : Group {
      using Group::store_;
    };
    return group.*(&Opened::store_);
  }
}

}  // namespace mscclc::torch_adapter
