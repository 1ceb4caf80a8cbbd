// A libgdrapi for tests, opened by MSCCLC_GDRCOPY_SO: it maps what a test says lies at addresses of
// a GPU, and fails when asked to. What the library's documentation forbids it counts as misuse.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace mscclc::cuda::gdr {

/// Changes hold for what is asked of the library later.
struct FakeGdr {
  int library_major = 2;
  std::string failing_call;  ///< such as "map"
  int error = 12;            ///< with which it fails
  uint64_t moved_by = 0;     ///< mappings are said to begin so far from where they were asked for
  /// A descriptor of `bytes` bytes at `address` of a GPU, which begin where it is read next; -1:
  /// nothing that can be pinned is there.
  std::function<int(uint64_t address, uint64_t bytes)> memory;
  std::atomic<int64_t> connections{0}, pins{0}, mappings{0};  ///< that there are now
  std::atomic<int64_t> mapped{0};                             ///< in all
  std::atomic<int64_t> misuses{0};
};

/// Where the library lies, in tests that have it in their data.
std::string fake_library();
/// The library as it comes, for tests.
FakeGdr* reset_fake();

}  // namespace mscclc::cuda::gdr

/// The library's state: by dlsym().
extern "C" mscclc::cuda::gdr::FakeGdr* mscclc_fake_gdr();
