// What is thrown in WebAssembly ends the program: zig's libc++ is built without exceptions. The
// compiler throws where memory ends, and where its own rules are broken; the page says so.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <typeinfo>

extern "C" {

void* __cxa_allocate_exception(size_t size) noexcept {
  void* thrown = malloc(size);
  if (thrown == nullptr) abort();
  return thrown;
}

void __cxa_free_exception(void* thrown) noexcept { free(thrown); }

[[noreturn]] void __cxa_throw(void*, std::type_info* type, void (*)(void*)) {
  if (*type == typeid(std::bad_alloc)) {
    fputs("it takes more memory than a page has; fewer ranks or instances take less\n", stderr);
  } else {
    fprintf(stderr, "it threw '%s'\n", type->name());
  }
  abort();
}

}  // extern "C"
