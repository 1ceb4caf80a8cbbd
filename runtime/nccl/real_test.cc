#include "runtime/nccl/base/real.h"

#include <dlfcn.h>

#include <fstream>

#include "runtime/nccl/abi/types.h"
#include "runtime/nccl/test_ranks.h"

namespace mscclc::nccl {
namespace {

using testing::Behind;

TEST_CASE("what MSCCLC_NCCL names is the only place") {
  CHECK(candidates("/opt/libnccl.so.2", "/a/libnccl.so.2", "") ==
        std::vector<std::string>{"/opt/libnccl.so.2"});
}

TEST_CASE("the real NCCL is looked for beside us, and beside PyTorch") {
  const auto paths = candidates("", "/a/libnccl.so.2",
                                "7f00-7f01 r--p 0 08:01 7 /usr/lib/libc.so.6\n"
                                "7f02-7f03 r-xp 0 08:01 8 /v/torch/lib/libtorch_cuda.so\n");
  REQUIRE(paths.size() > 2);
  CHECK(paths[0] == "/a/libnccl_real.so.2");
  CHECK(paths[1] == "/v/nvidia/nccl/lib/libnccl.so.2");
}

TEST_CASE("what is no NCCL is refused with a reason [case-6]") {
  std::string why;
  CHECK(load_real("/nowhere/libnccl.so.2", why) == nullptr);
  CHECK_THAT(why, Catch::Contains("'/nowhere/libnccl.so.2' cannot be the NCCL to fall back to"));
  CHECK(load_real("/lib/x86_64-linux-gnu/libc.so.6", why) == nullptr);
  CHECK_THAT(why, Catch::Contains("it has no nccl"));
  Dl_info own;  // the program, or the library of it that has this function
  REQUIRE(::dladdr(reinterpret_cast<const void*>(&load_real), &own) != 0);
  CHECK(load_real(own.dli_fname, why) == nullptr);
  CHECK_THAT(why, Catch::Contains("it is mscclc's own; set MSCCLC_NCCL"));
}

TEST_CASE("every version loads, and says what it lacks [case-3] [case-99]") {
  for (const int version : {21805, 22105, 22703, 22809, 23007}) {
    const std::string path = "runtime/nccl/stand_in/" + std::to_string(version) + "/libnccl.so.2";
    const Behind behind(path.c_str(), false);
    int reported = 0;
    CHECK(ncclGetVersion(&reported) == ncclSuccess);
    CHECK(reported == version);
    const auto has = [&](int since) { return version >= since; };
#define API(since, how, result, name, parameters, arguments) \
  CHECK((real_nccl()->name != nullptr) == has(since));
#include "runtime/nccl/abi/api.def"
#undef API
    ncclParamHandle_t handle = nullptr;
    const ncclResult_t bound = ncclParamBind(&handle, "NCCL_DEBUG");
    CHECK(bound == (has(23003) ? ncclSuccess : ncclInvalidUsage));
    if (!has(23003)) {
      CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("has no such function"));
    }
  }
}

TEST_CASE("ncclGetVersion() wants a place [case-3]") {
  CHECK(ncclGetVersion(nullptr) == ncclInvalidArgument);
}

TEST_CASE("types and reductions go both ways") {
  for (int type = 0; type < kTypes; ++type) {
    REQUIRE(dtype_of(type).has_value());
    CHECK(nccl_type_of(*dtype_of(type)) == type);
  }
  CHECK_FALSE(dtype_of(kTypes).has_value());
  CHECK_FALSE(dtype_of(-1).has_value());
  CHECK_FALSE(nccl_type_of(Dtype::e4m3b15).has_value());
  for (int op = 0; op < kNcclNumOps; ++op) CHECK(nccl_op_of(*reduce_op_of(op)) == op);
  CHECK_FALSE(reduce_op_of(kNcclNumOps).has_value());
}

TEST_CASE("texts of errors are NCCL's [case-86]") {
  const auto begins = [](int code, const char* text) {
    CHECK_THAT(ncclGetErrorString(static_cast<ncclResult_t>(code)), Catch::StartsWith(text));
  };
  begins(0, "no error");
  begins(1, "unhandled cuda error");
  begins(2, "unhandled system error");
  begins(3, "internal error");
  begins(4, "invalid argument");
  begins(5, "invalid usage");
  begins(6, "remote process exited");
  begins(7, "NCCL operation in progress");
  begins(99, "unknown result code");
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("ncclGroupStart()"));
}

}  // namespace
}  // namespace mscclc::nccl
