// Memory mapped by a fake GDRCopy: what is stored is there, each call may fail, nothing is left
// over.
#include "runtime/devices/cuda/gdrcopy/gdrcopy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/gdrcopy/fake_gdrapi.h"
#include "tests/helpers/runtime/descriptors.h"

namespace mscclc::cuda {
namespace {

constexpr uint64_t kPage = GdrMapping::kPage, kGpu = 0x700000000000;

/// The fake library, and a file that is a GPU's memory from kGpu on.
struct GdrWorld {
  GdrWorld() {
    file = memfd_create("memory of a GPU", MFD_CLOEXEC);
    REQUIRE(ftruncate(file, 4 * kPage) == 0);
    fake->memory = [this](uint64_t address, uint64_t bytes) {
      if (address < kGpu || address + bytes > kGpu + 4 * kPage) return -1;
      const int copy =
          ::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDWR | O_CLOEXEC);
      REQUIRE(lseek(copy, static_cast<off_t>(address - kGpu), SEEK_SET) >= 0);
      return copy;
    };
  }
  ~GdrWorld() { ::close(file); }
  uint64_t word(uint64_t offset) const {
    uint64_t value = 0;
    REQUIRE(::pread(file, &value, sizeof value, static_cast<off_t>(offset)) == sizeof value);
    return value;
  }
  void check_clean() const {
    CHECK(fake->connections == 0);
    CHECK(fake->pins == 0);
    CHECK(fake->mappings == 0);
    CHECK(fake->misuses == 0);
  }

  gdr::FakeGdr* const fake = gdr::reset_fake();
  int file = -1;
};

TEST_CASE("gdrcopy: what is stored is in the GPU's memory, and no more than it") {
  GdrWorld w;
  {
    auto gdr = GdrCopy::open(gdr::fake_library());
    REQUIRE(gdr);
    CHECK((*gdr)->version() == "2.5");
    const size_t before = testing::open_descriptors();
    {
      const auto made = GdrMapping::make(*gdr, kGpu + kPage, 2 * kPage);
      REQUIRE(made);
      const GdrMapping* const mapping = made->get();
      gdr->reset();  // it keeps what it needs
      mapping->store(kGpu + kPage, 1);
      mapping->store(kGpu + kPage + 4096 + 8, 0x1122334455667788);
      mapping->store(kGpu + 3 * kPage - 8, 3);
      CHECK(w.word(kPage) == 1);
      CHECK(w.word(kPage + 4096 + 8) == 0x1122334455667788);
      CHECK(w.word(3 * kPage - 8) == 3);
      CHECK(w.word(kPage - 8) == 0);
      CHECK(w.word(3 * kPage) == 0);
      CHECK(w.fake->pins == 1);
      CHECK(w.fake->mappings == 1);
    }
    CHECK(testing::open_descriptors() == before);
  }
  w.check_clean();
}

TEST_CASE("gdrcopy: a process has one connection, as long as it is needed") {
  GdrWorld w;
  for (int i = 0; i < 2; ++i) {
    auto first = *GdrCopy::open(gdr::fake_library());
    const auto second = *GdrCopy::open(gdr::fake_library());
    CHECK(first == second);
    CHECK(w.fake->connections == 1);
    first.reset();
    CHECK(w.fake->connections == 1);
  }
  w.check_clean();
}

// The library has no locks: the fake one counts calls that come while another is under way.
TEST_CASE("gdrcopy: several threads map memory at once") {
  GdrWorld w;
  {
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (uint64_t i = 1; i <= 50; ++i) {
          const auto gdr = GdrCopy::open(gdr::fake_library());
          if (!gdr) return;  // the last word shows it
          const auto mapping = GdrMapping::make(*gdr, kGpu + t * kPage, kPage);
          if (!mapping) return;
          (*mapping)->store(kGpu + t * kPage, i);
        }
      });
    }
  }
  for (uint64_t t = 0; t < 4; ++t) CHECK(w.word(t * kPage) == 50);
  w.check_clean();
}

TEST_CASE("gdrcopy: a library that cannot be used, and why") {
  GdrWorld w;
  const auto refusal = [](const std::string& library) {
    const auto gdr = GdrCopy::open(library);
    return gdr ? "it is open" : gdr.error().text();
  };
  CHECK(refusal("libno_such.so") ==
        "libno_such.so: cannot open shared object file: No such file or directory");
  CHECK(refusal("libc.so.6") == "it has no gdr_open: it is too old, or another library");
  w.fake->failing_call = "open";
  CHECK(refusal(gdr::fake_library()) ==
        "GDRCopy's driver (gdrdrv) is not loaded, is too old, or may not be used");
  w.fake->library_major = 3;
  CHECK_THAT(refusal(gdr::fake_library()), Catch::EndsWith(" is version 3.5 of GDRCopy, not 2"));
  w.check_clean();
}

TEST_CASE("gdrcopy: memory that cannot be mapped, and why") {
  GdrWorld w;
  {
    const auto gdr = GdrCopy::open(gdr::fake_library());
    REQUIRE(gdr);
    const size_t before = testing::open_descriptors();
    const auto refusal = [&](uint64_t address) {
      const auto mapping = GdrMapping::make(*gdr, address, kPage);
      REQUIRE(!mapping);
      CHECK(w.fake->pins == 0);
      CHECK(w.fake->mappings == 0);
      CHECK(testing::open_descriptors() == before);
      return mapping.error().text();
    };
    CHECK(refusal(kGpu + 4 * kPage) == "GDRCopy cannot pin 65536 bytes: Invalid argument (22)");
    w.fake->failing_call = "pin_buffer";
    CHECK(refusal(kGpu) == "GDRCopy cannot pin 65536 bytes: Cannot allocate memory (12)");
    w.fake->failing_call = "map";
    CHECK(refusal(kGpu) == "GDRCopy cannot map 65536 bytes: Cannot allocate memory (12)");
    w.fake->failing_call = "get_info_v2";
    CHECK(refusal(kGpu) == "GDRCopy does not say what it has mapped: Cannot allocate memory (12)");
    w.fake->failing_call.clear();
    w.fake->moved_by = 4096;
    CHECK(refusal(kGpu) ==
          "GDRCopy has mapped 65536 bytes at 0x700000001000, not 65536 at 0x700000000000");
  }
  w.check_clean();
}

}  // namespace
}  // namespace mscclc::cuda
