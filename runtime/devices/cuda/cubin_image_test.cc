// Images of kernels that are no cubins, or only a part of one.
#include "runtime/devices/cuda/cubin_image.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace mscclc::cuda {
namespace {

using Image = std::vector<uint8_t>;

template <typename Number>
void put(Image& image, size_t at, Number number) {
  std::memcpy(image.data() + at, &number, sizeof number);
}

// As nvcc lays them out: header, two sections (code, and memory that has no bytes in the file),
// their table, and that of one segment.
constexpr size_t kCode = 64, kCodeBytes = 100, kSections = 168, kSegments = kSections + 2 * 64,
                 kEnd = kSegments + 56;

Image cubin() {
  Image image(kEnd);
  std::memcpy(image.data(), "\177ELF\2\1\1", 7);
  put<uint16_t>(image, 18, 190);
  put<uint64_t>(image, 32, kSegments);
  put<uint64_t>(image, 40, kSections);
  put<uint16_t>(image, 54, 56);
  put<uint16_t>(image, 56, 1);
  put<uint16_t>(image, 58, 64);
  put<uint16_t>(image, 60, 2);
  put<uint32_t>(image, kSections + 4, 1);
  put<uint64_t>(image, kSections + 24, kCode);
  put<uint64_t>(image, kSections + 32, kCodeBytes);
  put<uint32_t>(image, kSections + 64 + 4, 8);
  put<uint64_t>(image, kSections + 64 + 24, kCode);
  put<uint64_t>(image, kSections + 64 + 32, uint64_t{1} << 40);
  put<uint64_t>(image, kSegments + 8, kCode);
  put<uint64_t>(image, kSegments + 32, kCodeBytes);
  return image;
}

/// The fault of an image in memory that ends with it: the address sanitizer sees reads beyond.
std::optional<Error> fault(const Image& image) {
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[image.size()]);
  std::copy(image.begin(), image.end(), exact.get());
  return fault_of_cubin({exact.get(), image.size()});
}

TEST_CASE("cubins: whole, cut off at any byte, or none") {
  CHECK(fault(cubin()) == std::nullopt);
  for (size_t size = 0; size < kEnd; ++size) {
    Image image = cubin();
    image.resize(size);
    CAPTURE(size);
    CHECK(fault(image) == (size < 64 ? "it is not a cubin" : "it is cut off"));
  }
  for (const size_t at : {0, 4, 5, 18}) {
    Image image = cubin();
    ++image[at];
    CAPTURE(at);
    CHECK(fault(image) == "it is not a cubin");
  }
}

TEST_CASE("cubins: parts that lie beyond the end") {
  const auto with = [](size_t at, auto number) {
    Image image = cubin();
    put(image, at, number);
    return fault(image);
  };
  const uint64_t most = ~uint64_t{0};
  for (const size_t field : {size_t{32}, size_t{40}, kSections + 24, kSegments + 8}) {
    CAPTURE(field);
    for (const uint64_t offset : {uint64_t{kEnd}, most, most - 99}) {
      CHECK(with(field, offset) == "it is cut off");
    }
  }
  for (const size_t field : {kSections + 32, kSegments + 32}) {
    CAPTURE(field);
    CHECK(with(field, uint64_t{kEnd - kCode}) == std::nullopt);
    CHECK(with(field, uint64_t{kEnd - kCode + 1}) == "it is cut off");
    CHECK(with(field, most - kCode + 1) == "it is cut off");
  }
  for (const size_t field : {56, 60}) {
    CAPTURE(field);
    CHECK(with(field, uint16_t{0xffff}) == "it is cut off");
    CHECK(with(field, uint16_t{0}) == "it is cut off");  // its table is somewhere
  }
  for (const size_t field : {54, 58}) CHECK(with(field, uint16_t{8}) == "it is cut off");
}

TEST_CASE("cubins: any bytes are looked at without reading beyond them") {
  std::mt19937_64 random(1);
  uint64_t whole = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    Image image = cubin();
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      const size_t at =
          random() % 2 == 0 ? random() % 64 : kSections + random() % (kEnd - kSections);
      image[at] = static_cast<uint8_t>(random() % 3 == 0 ? 0xff : random());
    }
    image.resize(image.size() - random() % 3);
    whole += fault(image) ? 0 : 1;
  }
  CHECK(whole > 0);
  CHECK(whole < 20'000);
}

}  // namespace
}  // namespace mscclc::cuda
