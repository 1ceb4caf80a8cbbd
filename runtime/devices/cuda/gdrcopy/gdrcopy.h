// GDRCopy (github.com/NVIDIA/gdrcopy): memory of a GPU mapped for the processor. Its library is
// opened at run time; what is needed of its interface, version 2, is declared here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ir/support/result.h"

namespace mscclc::cuda {

namespace gdr {

using Connection = struct ConnectionObject*;  ///< gdr_t
/// gdr_mh_t
struct Handle {
  unsigned long value;
};
/// gdr_info_v2_t
struct Info {
  uint64_t address;  ///< of the GPU, at which the mapping begins
  uint64_t mapped_bytes;
  uint32_t page_bytes;
  uint64_t cycles;
  uint32_t cycles_per_ms;
  unsigned mapped : 1;
  unsigned write_combining : 1;
  int mapping_type;
};

// Each by its name there without "gdr_", what it returns, and its parameters.
#define MSCCLC_GDR_FUNCTIONS(F)                                                                   \
  F(open, Connection, ())                                                                         \
  F(close, int, (Connection))                                                                     \
  F(runtime_get_version, void, (int* major, int* minor))                                          \
  F(pin_buffer, int,                                                                              \
    (Connection, unsigned long address, size_t bytes, uint64_t p2p_token, uint32_t address_space, \
     Handle*))                                                                                    \
  F(unpin_buffer, int, (Connection, Handle))                                                      \
  F(get_info_v2, int, (Connection, Handle, Info*))                                                \
  F(map, int, (Connection, Handle, void** to, size_t bytes))                                      \
  F(unmap, int, (Connection, Handle, void* from, size_t bytes))

struct Functions {
#define MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  MSCCLC_GDR_FUNCTIONS(MEMBER)
#undef MEMBER
};

}  // namespace gdr

/// A connection to GDRCopy's driver, or to CUDA's where that maps memory for the processor. There
/// is one of a process, as the library has state that connections share. Thread safety: from any
/// thread.
class GdrCopy {
 public:
  /// Fails where the library or a driver is not there, or not of version 2. The library stays open.
  static Result<std::shared_ptr<const GdrCopy>> open(const std::string& library);
  ~GdrCopy();
  GdrCopy(const GdrCopy&) = delete;
  GdrCopy& operator=(const GdrCopy&) = delete;

  /// "2.5"
  const std::string& version() const { return version_; }

 private:
  friend class GdrMapping;
  GdrCopy(const gdr::Functions& functions, gdr::Connection connection, std::string version)
      : functions_(functions), connection_(connection), version_(std::move(version)) {}

  const gdr::Functions functions_;
  const gdr::Connection connection_;
  const std::string version_;
};

/// Whole pages of a GPU's memory, pinned and mapped for the processor. The owner of the memory ends
/// this first. Thread safety: from any thread.
class GdrMapping {
 public:
  /// What is pinned begins and ends at a multiple of this.
  static constexpr uint64_t kPage = 65536;

  /// REQUIRES: the GPU's context is current; `address` and `bytes` are multiples of kPage.
  static Result<std::unique_ptr<const GdrMapping>> make(std::shared_ptr<const GdrCopy> gdr,
                                                        uint64_t address, uint64_t bytes);
  ~GdrMapping();
  GdrMapping(const GdrMapping&) = delete;
  GdrMapping& operator=(const GdrMapping&) = delete;

  /// Stores 8 bytes at a multiple of 8 of the GPU's addresses, and sends them on their way: they
  /// are one write, so that a kernel sees all or nothing of them. REQUIRES: they are inside.
  void store(uint64_t address, uint64_t value) const;

 private:
  GdrMapping(std::shared_ptr<const GdrCopy> gdr, uint64_t address, uint64_t bytes)
      : gdr_(std::move(gdr)), address_(address), bytes_(bytes) {}
  Result<void> pin();
  Result<void> map();

  const std::shared_ptr<const GdrCopy> gdr_;
  const uint64_t address_, bytes_;
  gdr::Handle handle_{};
  bool pinned_ = false;
  uint8_t* mapped_ = nullptr;  ///< nullptr: it is not mapped
};

}  // namespace mscclc::cuda
