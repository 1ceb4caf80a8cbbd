#include "runtime/devices/cuda/driver/context.h"

namespace mscclc::cuda {

std::shared_ptr<const PrimaryContext> PrimaryContext::open(const Driver& driver, int ordinal,
                                                           Diagnostics& diagnostics) {
  int count = 0;
  if (!succeeded(driver, driver.DeviceGetCount(&count), "count GPUs", diagnostics)) return nullptr;
  const std::string gpu = "cuda:" + std::to_string(ordinal);
  if (ordinal < 0 || ordinal >= count) {
    diagnostics
        .error("no-such-device", {},
               "there is no " + gpu + ": this process sees " + std::to_string(count) + " GPUs")
        .notes.push_back({"CUDA_VISIBLE_DEVICES chooses which; the local rank must be below"});
    return nullptr;
  }
  const OutsideCapture outside(driver);
  std::shared_ptr<PrimaryContext> context(new PrimaryContext(driver, ordinal));
  char model[128] = {};
  if (!succeeded(driver, driver.DeviceGetName(model, sizeof model - 1, ordinal),
                 "get the name of " + gpu, diagnostics) ||
      !succeeded(driver, driver.DevicePrimaryCtxRetain(&context->handle_, ordinal), "use " + gpu,
                 diagnostics)) {
    context->handle_ = nullptr;
    return nullptr;
  }
  if (!context->read_attributes(diagnostics)) return nullptr;
  context->model_ = model;
  return context;
}

PrimaryContext::~PrimaryContext() {
  // What it says does not matter: at the process's end the driver may be gone already.
  if (handle_ == nullptr) return;
  const OutsideCapture outside(driver_);
  driver_.DevicePrimaryCtxRelease(ordinal_);
}

bool ContextKeeper::keep(const Driver& driver, int ordinal, Diagnostics& diagnostics) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const PrimaryContext>& kept = kept_[ordinal];
  if (kept == nullptr) kept = PrimaryContext::open(driver, ordinal, diagnostics);
  return kept != nullptr;
}

bool PrimaryContext::read_attributes(Diagnostics& diagnostics) {
  for (const abi::Attribute attribute :
       {abi::kMultiprocessorCount, abi::kVirtualMemoryManagementSupported, abi::kPosixFdSupported,
        abi::kRdmaOfMappingsSupported, abi::kCanUse64BitStreamMemOps, abi::kDmaBufSupported,
        abi::kFabricSupported, abi::kMulticastSupported, abi::kComputeCapabilityMajor,
        abi::kComputeCapabilityMinor}) {
    int& value = attributes_[attribute];
    const abi::Result result = driver_.DeviceGetAttribute(&value, attribute, ordinal_);
    if (result == abi::kInvalidValue) {
      value = 0;  // an older driver
    } else if (!ok(result, "get an attribute of cuda:" + std::to_string(ordinal_), diagnostics)) {
      return false;
    }
  }
  return true;
}

// Asked about stream 0, the driver names captures of streams that wait for it, and breaks none. Of
// those of other streams it says nothing before it is too late.
bool PrimaryContext::wait_for_all(const std::string& attempt, Diagnostics& diagnostics) const {
  const OutsideCapture outside(driver_);
  int status = abi::kCaptureStatusNone;
  abi::Result result = driver_.StreamIsCapturing(nullptr, &status);
  const bool warned = result == abi::kStreamCaptureImplicit;
  if (!warned) result = driver_.CtxSynchronize();
  if (!warned && result != abi::kStreamCaptureUnsupported) return ok(result, attempt, diagnostics);
  Diagnostic& d = diagnostics.error(
      "cuda", {},
      "cannot " + attempt + ": this process captures a stream of cuda:" + std::to_string(ordinal_) +
          " in a CUDA graph, and the driver cannot wait for the GPU meanwhile");
  if (!warned) d.notes.push_back({"that has broken the capture, which will end with an error"});
  d.notes.push_back(
      {"outside of captures, make the first call of a communicator on each stream, and destroy "
       "communicators"});
  return false;
}

// Tries twice: any call may report an error of earlier work, and destructors that free memory need
// the context all the same.
CurrentContext::CurrentContext(const PrimaryContext& context) : context_(context) {
  const Driver& driver = context.driver();
  abi::Context current = nullptr;
  if (driver.CtxGetCurrent(&current) == abi::kSuccess && current == context.handle()) return;
  for (int i = 0; i < 2 && !pushed_; ++i) {
    result_ = driver.CtxPushCurrent(context.handle());
    pushed_ = result_ == abi::kSuccess;
  }
}

CurrentContext::~CurrentContext() {
  abi::Context popped = nullptr;
  if (pushed_) context_.driver().CtxPopCurrent(&popped);
}

bool CurrentContext::is_set(Diagnostics& diagnostics) const {
  return context_.ok(
      result_, [&] { return "make cuda:" + std::to_string(context_.ordinal()) + " current"; },
      diagnostics);
}

OutsideCapture::OutsideCapture(const Driver& driver)
    : driver_(driver),
      exchanged_(driver.ThreadExchangeStreamCaptureMode(&mode_) == abi::kSuccess) {}

OutsideCapture::~OutsideCapture() {
  if (exchanged_) driver_.ThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace mscclc::cuda
