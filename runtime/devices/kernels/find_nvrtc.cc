// Where libnvrtc is: PyTorch's wheels bring one, in a folder in which no loader looks.
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/devices/kernels/cubin_compiler.h"
#include "runtime/support/process/open_library.h"

namespace mscclc {
namespace {

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
/// Folders of wheels, in site-packages, of CUDA 13 and 12.
constexpr const char* kWheels[] = {"nvidia/cu13/lib/libnvrtc.so.13",
                                   "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"};
/// Libraries beside which one may lie: those of a toolkit.
constexpr const char* kOfToolkit[] = {"libcudart.so.", "libcublas.so.", "libnvrtc-builtins.so."};
constexpr const char* kPackages[] = {"/site-packages/", "/dist-packages/"};

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  (void)dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* into) {
        if (object->dlpi_name != nullptr && object->dlpi_name[0] == '/') {
          static_cast<std::vector<std::string>*>(into)->emplace_back(object->dlpi_name);
        }
        return 0;
      },
      &paths);
  return paths;
}

std::string_view file_name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

void add_once(std::vector<std::string>& places, std::string place) {
  if (std::ranges::find(places, place) == places.end()) places.push_back(std::move(place));
}

/// Beside a library of a toolkit, and in the wheels that are installed with one.
void add_places_near(const std::string& library, std::vector<std::string>& places) {
  const std::string_view name = file_name_of(library);
  if (std::ranges::any_of(kOfToolkit, [&](const char* of) { return name.starts_with(of); })) {
    for (const char* nvrtc : kNames) {
      add_once(places, library.substr(0, library.size() - name.size()) + nvrtc);
    }
  }
  for (const std::string_view packages : kPackages) {
    const size_t at = library.rfind(packages);
    if (at == std::string::npos) continue;
    for (const char* wheel : kWheels) {
      add_once(places, library.substr(0, at + packages.size()) + wheel);
    }
  }
}

}  // namespace

std::vector<std::string> nvrtc_places(std::span<const std::string> loaded,
                                      const std::string& cuda_home) {
  std::vector<std::string> places;
  for (const std::string& library : loaded) {
    if (file_name_of(library).starts_with("libnvrtc.so.")) add_once(places, library);
  }
  for (const std::string& library : loaded) {
    if (library.starts_with('/')) add_places_near(library, places);
  }
  if (!cuda_home.empty()) add_once(places, cuda_home + "/lib64/libnvrtc.so");
  for (const char* name : kNames) add_once(places, name);
  add_once(places, "/usr/local/cuda/lib64/libnvrtc.so");
  return places;
}

bool names_nvrtc(const Environment& environment) {
  const std::string_view named = environment.raw(Variable::MSCCLC_NVRTC);
  return !named.empty() && named != "none";
}

Result<std::unique_ptr<CubinCompiler>> find_compiler(const Environment& environment) {
  auto nvrtc = find_nvrtc(environment);
  if (nvrtc || names_nvrtc(environment)) return nvrtc;
  if (auto nvcc = find_nvcc()) return nvcc;
  return Error{nvrtc.error().text() + ", and no nvcc"};
}

Result<std::unique_ptr<CubinCompiler>> find_nvrtc(const Environment& environment) {
  if (is_static_program()) return Error{"a program that is linked statically loads no libnvrtc"};
  Diagnostics reported;  // by check_settings()
  const auto named = environment.text(Variable::MSCCLC_NVRTC, reported);
  if (named && *named == "none") return Error{"MSCCLC_NVRTC is none"};
  if (named && !named->empty()) {
    auto opened = open_nvrtc(*named);
    if (opened) return opened;
    return Error{fmt::format("MSCCLC_NVRTC is '{}': {}", *named, opened.error().text())};
  }
  const char* const home = std::getenv("CUDA_HOME");
  for (const std::string& place : nvrtc_places(loaded_libraries(), home == nullptr ? "" : home)) {
    if (auto opened = open_nvrtc(place)) return opened;
  }
  return Error{"no libnvrtc.so.12 or .13 is to be found"};
}

}  // namespace mscclc
