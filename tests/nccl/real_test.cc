#include "runtime/doors/nccl/backends/real.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <thread>

#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/report.h"
#include "tests/helpers/runtime/named_threads.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

/// A pipe with nothing at its other end.
struct NamedPipe {
  explicit NamedPipe(const char* what)
      : name(std::string(std::getenv("TEST_TMPDIR")) + "/" + what) {
    REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
  }
  ~NamedPipe() { ::unlink(name.c_str()); }
  const std::string name;
};

TEST_CASE("what MSCCLC_NCCL names is the only place") {
  CHECK(candidates("/opt/libnccl.so.2", "/a/libnccl.so.2", "") ==
        std::vector<std::string>{"/opt/libnccl.so.2"});
}

TEST_CASE("the real NCCL is looked for beside us, and beside frameworks") {
  const auto paths = candidates("", "/a/libnccl.so.2",
                                "7f00-7f01 r--p 0 08:01 7 /usr/lib/libc.so.6\n"
                                "7f02-7f03 r-xp 0 08:01 8 /v/torch/lib/libtorch_cuda.so\n");
  REQUIRE(paths.size() > 2);
  CHECK(paths[0] == "/a/libnccl_real.so.2");
  CHECK(paths[1] == "/v/nvidia/nccl/lib/libnccl.so.2");
  // As their wheels have them; the frameworks may be in one process, of several installations.
  const auto both = candidates(
      "", "",
      "7f00-7f01 r-xp 0 08:01 7 /j/jax_plugins/xla_cuda13/xla_cuda_plugin.so\n"
      "7f02-7f03 r-xp 0 08:01 8 /c/cupy_backends/cuda/libs/nccl.cpython-312-x86_64.so\n");
  REQUIRE(both.size() > 2);
  CHECK(both[0] == "/c/nvidia/nccl/lib/libnccl.so.2");
  CHECK(both[1] == "/j/nvidia/nccl/lib/libnccl.so.2");
}

TEST_CASE("what is no NCCL is refused with a reason [case-6]") {
  const auto refusal = [](const std::string& path) {
    const auto real = load_real(path);
    return real ? "it is loaded" : real.error().text();
  };
  CHECK_THAT(refusal("/nowhere/libnccl.so.2"),
             Catch::Contains("'/nowhere/libnccl.so.2' cannot be the NCCL to fall back to"));
  CHECK_THAT(refusal("/lib/x86_64-linux-gnu/libc.so.6"), Catch::Contains("it has no nccl"));
  const NamedPipe pipe("nccl");
  CHECK_THAT(refusal(pipe.name),
             Catch::EndsWith("cannot be the NCCL to fall back to: it is not a file"));
  Dl_info own;  // the program, or the library of it that has this function
  REQUIRE(::dladdr(reinterpret_cast<const void*>(&load_real), &own) != 0);
  CHECK_THAT(refusal(own.dli_fname), Catch::Contains("it is mscclc's own; set MSCCLC_NCCL"));
}

TEST_CASE("every version loads, and says what it lacks [case-3] [case-99]") {
  for (const int version : {21805, 22105, 22703, 22809, 23007, 23203}) {
    const std::string path = "tests/fakes/nccl/" + std::to_string(version) + "/libnccl.so.2";
    const ServedBy served(path.c_str(), false);
    int reported = 0;
    CHECK(ncclGetVersion(&reported) == ncclSuccess);
    CHECK(reported == version);
    const auto has = [&](int since) { return version >= since; };
#define API(since, how, result, name, parameters, arguments) \
  CHECK((real_nccl()->name != nullptr) == has(since));
#include "runtime/doors/nccl/abi/api.def"
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

TEST_CASE("each type and reduction of NCCL's is one of ours, and another than the others") {
  std::set<Dtype> types;
  for (int type = 0; type < kTypes; ++type) {
    REQUIRE(dtype_of(type).has_value());
    types.insert(*dtype_of(type));
  }
  CHECK(types.size() == kTypes);
  CHECK_FALSE(types.contains(Dtype::e4m3b15));
  CHECK_FALSE(dtype_of(kTypes).has_value());
  CHECK_FALSE(dtype_of(-1).has_value());
  std::set<ReduceOp> reductions;
  for (int op = 0; op < kNcclNumOps; ++op) reductions.insert(reduce_op_of(op).value());
  CHECK(reductions.size() == kNcclNumOps);
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

using Settings = std::vector<std::pair<std::string, std::string>>;

/// What these settings of NCCL's make of standard output, or of another descriptor.
std::string output_with(const Settings& settings, const std::function<void()>& fn,
                        int descriptor = STDOUT_FILENO) {
  for (const auto& [name, value] : settings) ::setenv(name.c_str(), value.c_str(), 1);
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int before = ::dup(descriptor);
  std::fflush(stdout);
  ::dup2(::fileno(file), descriptor);
  read_debug_settings();
  fn();
  ::dup2(before, descriptor);
  ::close(before);
  for (const auto& [name, value] : settings) ::unsetenv(name.c_str());
  read_debug_settings();
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST_CASE("a setting of NCCL's that means nothing brings a warning, once") {
  const auto nothing = [] { read_debug_settings(); };
  const std::string level = output_with({{"NCCL_DEBUG", "foo"}}, nothing);
  CHECK_THAT(level, Catch::Contains(" NCCL WARN NCCL_DEBUG is 'foo'; known are VERSION, WARN, INFO "
                                    "and TRACE: nothing is written\n"));
  CHECK(std::count(level.begin(), level.end(), '\n') == 1);
  CHECK(output_with({{"NCCL_DEBUG", "Warn"}}, nothing) == "");
  CHECK_THAT(output_with({{"NCCL_DEBUG", "WARN"}, {"NCCL_DEBUG_FILE", "/dev/null/a"}}, nothing),
             Catch::Contains("NCCL_DEBUG_FILE is '/dev/null/a': Not a directory (20): lines "
                             "go to standard output\n"));
  const NamedPipe pipe("lines");  // opening it does not wait
  CHECK_THAT(output_with({{"NCCL_DEBUG", "WARN"}, {"NCCL_DEBUG_FILE", pipe.name}}, nothing),
             Catch::Contains("it is a pipe with no reader: lines go to standard output\n"));
}

TEST_CASE("lines of NCCL_DEBUG that cannot be written are reported once") {
  const auto lines = [] {
    for (const char* text : {"one", "two"}) (void)fail(ncclInvalidUsage, text);
  };
  CHECK(output_with({{"NCCL_DEBUG", "WARN"}, {"NCCL_DEBUG_FILE", "/dev/full"}}, lines,
                    STDERR_FILENO) ==
        "mscclc: lines of NCCL_DEBUG are lost: NCCL_DEBUG_FILE: No space left on device (28)\n");
}

TEST_CASE("the log says of one rank's call that it is a copy") {
  const ServedBy served(nullptr, true);
  Ranks ranks(1);
  int value = 1;
  const auto call = [&] {
    CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, ranks.comms[0], nullptr) == ncclSuccess);
  };
  CHECK_THAT(output_with({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "COLL"}}, call),
             Catch::EndsWith(" nranks 1 stream 0x0: a copy\n"));
}

TEST_CASE("a field of a configuration that has no effect on plans brings a warning, once") {
  const ServedBy served(nullptr, true);
  CallersConfig config(112, 23100);
  config.at(96) = 1;
  const std::string said = output_with({}, [&] {
    for (int i = 0; i < 2; ++i) {
      ncclUniqueId id;
      ncclComm_t comm = nullptr;
      REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
      REQUIRE(ncclCommInitRankConfig(&comm, 1, id, 0, config.get()) == ncclSuccess);
      CHECK(ncclCommDestroy(comm) == ncclSuccess);
    }
  });
  CHECK_THAT(said, Catch::Contains(" NCCL WARN launchOrderImplicit of a communicator's "
                                   "configuration has no effect on calls that plans serve"));
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
}

TEST_CASE("what NCCL ignores of its own variables counts as not set, and brings a warning") {
  const ServedBy served(nullptr, false);
  for (const auto& [name, value] : Settings{{"NCCL_MAX_CTAS", "0"},
                                            {"NCCL_CTA_POLICY", "BEST"},
                                            {"NCCL_GRAPH_MIXING_SUPPORT", "2"}}) {
    const std::string said = output_with({{name, value}}, [] { const Ranks ranks(1); });
    CHECK_THAT(said, Catch::Contains(" NCCL WARN " + name + " is '" + value +
                                     "', which counts as not set: "));
  }
}

TEST_CASE("NCCL_COMM_BLOCKING that means nothing leaves it to the configuration") {
  const ServedBy served(nullptr, false);
  const ncclUniqueId id = new_id();
  ncclComm_t comm = nullptr;
  const auto make = [&] {
    CallersConfig config = unwaited();
    CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, config.get()) == ncclInProgress);
  };
  CHECK_THAT(output_with({{"NCCL_COMM_BLOCKING", "foo"}}, make),
             Catch::Contains("NCCL_COMM_BLOCKING is 'foo'; allowed are 0 and 1"));
  // The thread that makes it still asks for the NCCL that this test has put in place.
  mscclc::testing::await_end_of_threads("mscclc-nccl");
  CHECK(ncclCommAbort(comm) == ncclSuccess);
}

}  // namespace
}  // namespace mscclc::nccl::testing
