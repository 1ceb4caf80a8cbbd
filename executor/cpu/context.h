// Saves the present flow of control and continues another: the only part of fibers that knows the
// processor. x86-64 and aarch64 in a few instructions, ucontext elsewhere (and everywhere with
// -DMSCCLC_UCONTEXT).
#pragma once

#include <cstddef>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(MSCCLC_UCONTEXT)
#define MSCCLC_OWN_CONTEXT 1
#else
#include <ucontext.h>
#endif

namespace mscclc {

/// A stopped flow of control. Not to be copied once created.
struct Context {
#if defined(MSCCLC_OWN_CONTEXT)
  void* stack_pointer = nullptr;  ///< what a callee must preserve lies on the stack
#else
  ucontext_t saved;
#endif
};

/// Makes `context` one that will call `function(argument)`, which must not return, on a stack.
void create_context(Context& context, void* stack, size_t bytes, void (*function)(void*),
                    void* argument);

/// Stops here, into `from`, and continues `to`.
void switch_context(Context& from, Context& to);

}  // namespace mscclc
