// Where kernels of the library's plans are looked for.
#include "runtime/choice/library/kernel_folder.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace mscclc {
namespace {

namespace fs = std::filesystem;

fs::path scratch(const char* name) {
  const char* base = std::getenv("TEST_TMPDIR");
  const fs::path path = fs::path(base == nullptr ? "/tmp" : base) / name;
  fs::remove_all(path);
  fs::create_directories(path);
  return fs::canonical(path);
}

std::string made(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "x";
  return file;
}

}  // namespace

TEST_CASE("kernels of the package that a library or a program belongs to") {
  const fs::path root = scratch("installed");
  const std::string nccl = made(root / "usr/lib/mscclc/libnccl.so.2");
  const std::string library = made(root / "usr/lib/libmscclc.so.0");
  const std::string program = made(root / "usr/bin/mscclc");
  CHECK(installed_kernels(nccl) == "");
  const std::string folder = root / "usr/share/mscclc/kernels";
  made(folder);  // no folder
  CHECK(installed_kernels(library) == "");
  fs::remove(folder);
  fs::create_directories(folder);
  CHECK(installed_kernels(nccl) == folder);
  CHECK(installed_kernels(library) == folder);
  CHECK(installed_kernels(program) == folder);
  // By a link from elsewhere; not what only lies nearby.
  fs::create_directories(root / "elsewhere/lib");
  fs::create_symlink(library, root / "elsewhere/lib/libmscclc.so");
  CHECK(installed_kernels(root / "elsewhere/lib/libmscclc.so") == folder);
  CHECK(installed_kernels(made(root / "usr/lib/python3/site/mscclc/libmscclc.so.0")) == "");
  CHECK(installed_kernels(root / "usr/lib/missing.so") == "");
  CHECK(installed_kernels("") == "");
  const fs::path before = fs::current_path();
  fs::current_path(root / "usr/lib");
  CHECK(installed_kernels("libmscclc.so.0") == "");
  CHECK(installed_kernels("./libmscclc.so.0") == folder);
  fs::current_path(before);
}

TEST_CASE("MSCCLC_KERNEL_PATH goes before the package") {
  const auto folder = [](const std::string& value) {
    Diagnostics diagnostics;
    const Environment environment(Environment::Values{{"MSCCLC_KERNEL_PATH", value}});
    const auto found = kernel_folder(environment, diagnostics);
    return found ? *found : diagnostics.all().front().code;
  };
  CHECK(folder("/opt/kernels") == "/opt/kernels");
  CHECK(folder("/opt/kernels//") == "/opt/kernels");
  CHECK(folder("/") == "/");
  CHECK(folder("none") == "");
  CHECK(folder("a\nb") == "bad-variable");
  CHECK(folder("") == "");  // counts as not set: this test belongs to no package
}

}  // namespace mscclc
