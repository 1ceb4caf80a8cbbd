#include "executor/cpu/context.h"

#include <cstdint>

namespace mscclc {

#if defined(MSCCLC_OWN_CONTEXT)

extern "C" {
/// Pushes what a callee must preserve, stores the stack pointer in *from, pops the same at `to`.
void mscclc_switch_context(void** from, void* to);
/// Where a new context begins: calls the function in one preserved register on another's value.
void mscclc_enter_context();
}

#if defined(__x86_64__)
__asm__(R"(
.text
.p2align 4
.type mscclc_switch_context, @function
mscclc_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size mscclc_switch_context, . - mscclc_switch_context
.type mscclc_enter_context, @function
mscclc_enter_context:
  movq %r12, %rdi
  callq *%r13
  ud2
.size mscclc_enter_context, . - mscclc_enter_context
)");

void create_context(Context& context, void* stack, size_t bytes, void (*function)(void*),
                    void* argument) {
  // r15, r14, r13, r12, rbx, rbp, return address, two words that align the first call.
  uint64_t* sp = reinterpret_cast<uint64_t*>(static_cast<char*>(stack) + bytes) - 9;
  for (int i = 0; i < 9; ++i) sp[i] = 0;
  sp[2] = reinterpret_cast<uint64_t>(function);
  sp[3] = reinterpret_cast<uint64_t>(argument);
  sp[6] = reinterpret_cast<uint64_t>(&mscclc_enter_context);
  context.stack_pointer = sp;
}
#else
__asm__(R"(
.text
.p2align 4
.type mscclc_switch_context, %function
mscclc_switch_context:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size mscclc_switch_context, . - mscclc_switch_context
.type mscclc_enter_context, %function
mscclc_enter_context:
  mov x0, x19
  blr x20
  brk #0
.size mscclc_enter_context, . - mscclc_enter_context
)");

void create_context(Context& context, void* stack, size_t bytes, void (*function)(void*),
                    void* argument) {
  uint64_t* sp = reinterpret_cast<uint64_t*>(static_cast<char*>(stack) + bytes) - 20;
  for (int i = 0; i < 20; ++i) sp[i] = 0;
  sp[0] = reinterpret_cast<uint64_t>(argument);                // x19
  sp[1] = reinterpret_cast<uint64_t>(function);                // x20
  sp[11] = reinterpret_cast<uint64_t>(&mscclc_enter_context);  // x30
  context.stack_pointer = sp;
}
#endif

void switch_context(Context& from, Context& to) {
  mscclc_switch_context(&from.stack_pointer, to.stack_pointer);
}

#else

namespace {

// makecontext passes ints only: a pointer travels as two.
void enter(unsigned f_low, unsigned f_high, unsigned a_low, unsigned a_high) {
  const auto join = [](unsigned low, unsigned high) {
    return static_cast<uintptr_t>(uint64_t{high} << 32 | low);
  };
  reinterpret_cast<void (*)(void*)>(join(f_low, f_high))(
      reinterpret_cast<void*>(join(a_low, a_high)));
}

}  // namespace

void create_context(Context& context, void* stack, size_t bytes, void (*function)(void*),
                    void* argument) {
  const auto f = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(function));
  const auto a = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(argument));
  getcontext(&context.saved);
  context.saved.uc_stack.ss_sp = stack;
  context.saved.uc_stack.ss_size = bytes;
  context.saved.uc_link = nullptr;
  makecontext(&context.saved, reinterpret_cast<void (*)()>(&enter), 4, static_cast<unsigned>(f),
              static_cast<unsigned>(f >> 32), static_cast<unsigned>(a),
              static_cast<unsigned>(a >> 32));
}

void switch_context(Context& from, Context& to) { swapcontext(&from.saved, &to.saved); }

#endif

}  // namespace mscclc
