// Libraries that are opened at run time, where they are installed, and never closed.
#pragma once

#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <string>

#include "ir/support/result.h"

namespace mscclc {

/// Linked statically, so without a loader. What it opens gets a C library of its own, in which no
/// thread can begin: such calls crash.
inline bool is_static_program() { return ::getauxval(AT_BASE) == 0; }

/// True of a path at which there is something that is not a file, such as a pipe, which dlopen()
/// would wait for. Only the loader knows what a name without a folder means.
inline bool is_no_file(const std::string& path) {
  struct stat status;
  return path.find('/') != path.npos && ::stat(path.c_str(), &status) == 0 &&
         !S_ISREG(status.st_mode);
}

/// A static program opens no library of C++, as these begin threads.
inline Result<void*> open_library(const std::string& file) {
  if (is_no_file(file)) return Error{file + ": it is not a file"};
  void* const opened = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* const error = ::dlerror();
    return Error{error != nullptr ? error : "it cannot be opened"};
  }
  if (!is_static_program() || ::dlsym(opened, "__gxx_personality_v0") == nullptr) return opened;
  return Error{
      file +
      ": it is a library of C++, which a program that is linked statically cannot use; one "
      "with the GPU part is not, nor is one that links libmscclc"};
}

/// Where it fails, `function` becomes nullptr.
template <class Function>
Result<void> find_function(void* library, const std::string& name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name.c_str()));
  if (function == nullptr)
    return Error{"it has no " + name + ": it is too old, or another library"};
  return {};
}

}  // namespace mscclc
