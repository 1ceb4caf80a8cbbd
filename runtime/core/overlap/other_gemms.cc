// GEMMs of another library that communicate themselves: it has its own streams, chunks and memory.
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
  bool run(const RunPlace& place, Diagnostics& diagnostics) override {
    return gemms_->run(place.call, place.stream, diagnostics);
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
};

}  // namespace

std::unique_ptr<Backend> make_other_gemms(const Job& job) {
  return std::make_unique<OtherLibraryGemms>(job);
}

}  // namespace mscclc::overlap
