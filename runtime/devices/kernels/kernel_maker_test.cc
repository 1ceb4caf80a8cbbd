// Kernels are made once, in the background, for all that ask; what they are kept in, and what is
// said where they cannot be made.
#include "runtime/devices/kernels/kernel_maker.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>

#include "executor/testing/test_plans.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/log.h"
#include "tests/helpers/files/made_up_folder.h"

namespace mscclc {
namespace {

namespace fs = std::filesystem;
using namespace testing;

/// What a test's compiler does, and how often it was asked.
struct Work {
  std::atomic<int> compiled{0};
  std::string error;  ///< "": none
  std::string version = "compiler 1";
  std::shared_ptr<std::latch> may_begin;  ///< nullptr: at once
};

class TestCompiler final : public CubinCompiler {
 public:
  explicit TestCompiler(Work& work) : work_(work) {}
  Result<std::string> compile(const std::string& source, const std::string& arch) const override {
    if (work_.may_begin != nullptr) work_.may_begin->wait();
    ++work_.compiled;
    if (!work_.error.empty()) return Error{work_.error};
    return arch + ":" + source;
  }
  const std::string& version() const override { return work_.version; }
  const std::string& file() const override { return file_; }

 private:
  Work& work_;
  const std::string file_ = "/opt/compiler";
};

struct MakerHome {
  std::unique_ptr<CachingKernelMaker> maker() {
    return std::make_unique<CachingKernelMaker>(
        [this]() -> Result<std::unique_ptr<CubinCompiler>> {
          ++found;
          return std::make_unique<TestCompiler>(work);
        },
        KernelCache({folder}));
  }
  Work work;
  int found = 0;
  const MadeUpFolder made;
  const fs::path folder = made.path() + "/kernels";
};

KernelOrder order_of(uint32_t blocks, bool wait = false) {
  return {std::make_shared<const Program>(one_shot(2, blocks, PacketFormat::LL16).program),
          std::string(64, 'd'), "sm_90", wait};
}

const Result<KernelImage>& await(const OrderedKernels& ordered) {
  while (ordered.result() == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return *ordered.result();
}

/// The lines of the log while it lives.
struct Lines {
  Lines() {
    Diagnostics diagnostics;
    REQUIRE(start_log(Environment(Environment::Values{{"MSCCLC_DEBUG", "WARN"}}), diagnostics));
    REQUIRE(set_log_sink([this](const std::string& line) { all.push_back(line); }, diagnostics));
  }
  std::vector<std::string> end() {
    Diagnostics diagnostics;
    REQUIRE(set_log_sink({}, diagnostics));
    reset_log();
    return all;
  }
  std::vector<std::string> all;
};

TEST_CASE("kernel maker: in the background, once for all that order the same") {
  MakerHome home;
  home.work.may_begin = std::make_shared<std::latch>(1);
  const auto maker = home.maker();
  const auto first = maker->order(order_of(2)), again = maker->order(order_of(2));
  const auto other = maker->order(order_of(4));
  CHECK(first == again);
  CHECK(first != other);
  CHECK(first->result() == nullptr);  // the caller went on
  home.work.may_begin->count_down();
  const Result<KernelImage>& made = await(*first);
  REQUIRE(made);
  CHECK_THAT(made->image, Catch::StartsWith("sm_90:"));
  CHECK(made->from == "compiled by compiler 1");
  REQUIRE(await(*other));
  CHECK(made->image != (*other->result())->image);
  CHECK(home.work.compiled == 2);
  CHECK(home.found == 1);
  CHECK(maker->about() ==
        "compiled by compiler 1 (/opt/compiler), kept in '" + home.folder.string() + "'");
}

TEST_CASE("kernel maker: a later one finds what was kept, at once") {
  MakerHome home;
  const auto before = await(*home.maker()->order(order_of(2)));
  REQUIRE(before);
  const auto found = home.maker()->order(order_of(2));
  REQUIRE(found->result() != nullptr);
  REQUIRE(*found->result());
  CHECK((*found->result())->image == before->image);
  CHECK_THAT((*found->result())->from, Catch::StartsWith("kept in '" + home.folder.string()));
  CHECK(home.work.compiled == 1);
  // Not what another compiler has made.
  home.work.version = "compiler 2";
  REQUIRE(await(*home.maker()->order(order_of(2))));
  CHECK(home.work.compiled == 2);
}

TEST_CASE("kernel maker: those that are to wait have them at once") {
  MakerHome home;
  const auto maker = home.maker();
  std::vector<std::thread> threads;
  std::atomic<int> made{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto ordered = maker->order(order_of(2, true));
      if (ordered->result() != nullptr && *ordered->result()) ++made;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(made == 4);
  CHECK(home.work.compiled == 1);
}

TEST_CASE("kernel maker: an error is one warning, and not tried again") {
  MakerHome home;
  home.work.error = "kernels.cu(1): error: no\nsuch thing";
  const auto maker = home.maker();
  Lines lines;
  for (int i = 0; i < 3; ++i) {
    const auto ordered = maker->order(order_of(2));
    const auto& result = await(*ordered);
    REQUIRE(!result);
    CHECK(result.error() == home.work.error);
  }
  const auto all = lines.end();
  REQUIRE(all.size() == 1);
  CHECK_THAT(all[0], Catch::Contains("the interpreter runs them: compiler 1 for sm_90: "
                                     "kernels.cu(1): error: no such thing"));
  CHECK(home.work.compiled == 1);
  CHECK(!fs::exists(home.folder / "x"));
}

TEST_CASE("kernel maker: what cannot be kept is held while the process runs") {
  MakerHome home;
  std::ofstream(home.folder) << "no folder";
  const auto maker = home.maker();
  for (int i = 0; i < 3; ++i) {
    const auto ordered = maker->order(order_of(2));
    REQUIRE(await(*ordered));
  }
  CHECK(home.work.compiled == 1);
}

TEST_CASE("kernel maker: without a compiler it says why") {
  MakerHome home;
  CachingKernelMaker maker(
      []() -> Result<std::unique_ptr<CubinCompiler>> { return Error{"there is none"}; },
      KernelCache({home.folder}));
  const auto ordered = maker.order(order_of(2));
  REQUIRE(ordered->result() != nullptr);
  REQUIRE(!*ordered->result());
  CHECK(ordered->result()->error() == "there is none");
  CHECK(maker.about() == "not compiled: there is none");
  CHECK(!fs::exists(home.folder));
}

}  // namespace
}  // namespace mscclc
