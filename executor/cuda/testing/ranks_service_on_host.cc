// The service where threads of blocks are fibers: it takes turns with them.
#include <utility>

#include "executor/cuda/testing/ranks_service.h"

namespace mscclc::cuda {
namespace {

class ServiceInTurns final : public RanksService {
 public:
  explicit ServiceInTurns(std::function<Served()> serve)
      : id_(host::Gpu::get().services().add(
            [serve = std::move(serve)] { return serve() == Served::one; })) {}
  ~ServiceInTurns() override { host::Gpu::get().services().remove(id_); }

 private:
  const uint32_t id_;
};

}  // namespace

std::unique_ptr<RanksService> start_service(int, std::function<Served()> serve,
                                            std::function<void(cudaError_t)>) {
  return std::make_unique<ServiceInTurns>(std::move(serve));
}

}  // namespace mscclc::cuda
