// GEMMs of another library that communicate themselves: it has its own streams, chunks and memory.
#include <fmt/format.h>

#include "runtime/core/overlap/backend.h"

namespace mscclc::overlap {
namespace {

class OtherLibraryGemms final : public Backend {
 public:
  explicit OtherLibraryGemms(const Job& job) : job_(job) {}

  uint64_t workspace_bytes() const override { return 0; }
  uint64_t held_bytes() const override { return gemms_->held_bytes(); }
  bool prepare(Diagnostics&) override { return true; }
  bool connect(Diagnostics& diagnostics) override {
    gemms_ = job_.options.cublasmp.make(*job_.owner.communicator, job_.config, diagnostics);
    return gemms_ != nullptr;  // or all ranks have none
  }
  bool may_run(StreamHandle stream, Diagnostics& diagnostics) override {
    const std::string& why_not = job_.options.cublasmp.first_uncaptured;
    if (has_run_ || why_not.empty() || !job_.device.is_capturing(stream)) return true;
    return refuse_overlap(
        job_.config,
        fmt::format("an object's first run by '{}' cannot be captured: {}", kCublasMp, why_not),
        diagnostics);
  }
  bool run(const RunPlace& place, Diagnostics& diagnostics) override {
    const bool ran = gemms_->run(place.call, place.stream, diagnostics);
    has_run_ = has_run_ || ran;
    return ran;
  }
  void abort() override {
    if (gemms_ != nullptr) gemms_->abort();
  }
  const std::vector<Tile>& tiles() const override { return tiles_; }
  bool gives_gathered() const override { return false; }

 private:
  const Job& job_;
  const std::vector<Tile> tiles_;
  std::unique_ptr<OtherGemms> gemms_;
  bool has_run_ = false;
};

}  // namespace

std::unique_ptr<Backend> make_other_gemms(const Job& job) {
  return std::make_unique<OtherLibraryGemms>(job);
}

}  // namespace mscclc::overlap
