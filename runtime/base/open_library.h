// Libraries that are opened at run time, where they are installed, and never closed.
#pragma once

#include <dlfcn.h>

#include <string>

namespace mscclc {

/// nullptr, and why.
[[nodiscard]] inline void* open_library(const std::string& file, std::string& why) {
  void* const opened = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened != nullptr) return opened;
  const char* const error = ::dlerror();
  why = error != nullptr ? error : "it cannot be opened";
  return nullptr;
}

/// False, and why.
template <class Function>
[[nodiscard]] bool find_function(void* library, const std::string& name, Function& function,
                                 std::string& why) {
  function = reinterpret_cast<Function>(::dlsym(library, name.c_str()));
  if (function == nullptr) why = "it has no " + name + ": it is too old, or another library";
  return function != nullptr;
}

}  // namespace mscclc
