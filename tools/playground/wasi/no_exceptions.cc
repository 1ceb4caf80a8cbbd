// What is thrown in WebAssembly ends the program: zig's libc++ is built without exceptions. The
// compiler throws where memory ends, and where its own rules are broken; the page says so.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <typeinfo>

namespace {

[[noreturn]] void end_for_memory() {
  fputs("it takes more memory than a page has", stderr);
  abort();
}

[[maybe_unused]] const auto kOtherHandler = std::set_new_handler(end_for_memory);

}  // namespace

extern "C" {

void* __cxa_allocate_exception(size_t size) noexcept {
  void* thrown = malloc(size);
  if (thrown == nullptr) abort();
  return thrown;
}

void __cxa_free_exception(void* thrown) noexcept { free(thrown); }

[[noreturn]] void __cxa_throw(void*, std::type_info* type, void (*)(void*)) {
  if (*type == typeid(std::bad_alloc)) end_for_memory();
  fprintf(stderr, "it threw '%s'", type->name());
  abort();
}

}  // extern "C"
