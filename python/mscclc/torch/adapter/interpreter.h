// Python's interpreter, which this library has no symbol of: its functions are found in the
// process.
#pragma once

#include <dlfcn.h>

namespace mscclc::torch_adapter {

/// Lets other threads have the interpreter while it lives, if this thread has it. For what waits
/// for another thread, or takes a lock that one may have: that thread may need the interpreter, to
/// let go of a tensor, or for a store that is written in Python. Locks are taken after it, and so
/// end first.
class WithoutInterpreter {
 public:
  WithoutInterpreter() {
    const Functions& python = functions();
    // Where Python has ended, or never was, every thread seems to have it.
    const bool runs = python.is_initialized != nullptr && python.is_initialized() != 0;
    if (runs && python.is_here() != 0) state_ = python.save();
  }
  ~WithoutInterpreter() {
    if (state_ != nullptr) functions().restore(state_);
  }
  WithoutInterpreter(const WithoutInterpreter&) = delete;
  WithoutInterpreter& operator=(const WithoutInterpreter&) = delete;

 private:
  struct Functions {
    int (*is_initialized)();
    int (*is_here)();
    void* (*save)();
    void (*restore)(void*);
  };
  template <class Function>
  static void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }
  static const Functions& functions() {
    static const Functions found = [] {
      Functions made{};
      find("PyGILState_Check", made.is_here);
      find("PyEval_SaveThread", made.save);
      find("PyEval_RestoreThread", made.restore);
      if (made.is_here && made.save && made.restore) find("Py_IsInitialized", made.is_initialized);
      return made;
    }();
    return found;
  }

  void* state_ = nullptr;
};

}  // namespace mscclc::torch_adapter
