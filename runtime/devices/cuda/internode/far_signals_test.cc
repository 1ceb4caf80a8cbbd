// Signals to GPUs over verbs: that what they announce is there before them, whichever way the
// network device writes and whatever sets the count; and what is said of the ways.
#include "tests/helpers/internode/verbs_nodes.h"
#include "tests/helpers/runtime/log_file.h"

namespace mscclc::cuda {
namespace {

const Environment::Values kInfo{{"MSCCLC_DEBUG", "INFO"}, {"MSCCLC_DEBUG_SUBSYS", "INIT"}};
const std::string kGdrCopy = "counts of cuda:1 are set through GDRCopy 2.5";
const std::string kWrites = "fake0 writes the memory of cuda:1 by ";
const std::string kRead = "; a read of it comes before each signal";

// Whatever the network device has written is seen after a read on its path at the earliest
// (FakeVerbs::posted): without that read, or with one on the other path, a count comes too early.
TEST_CASE("signals to gpus: through GDRCopy, after the read") {
  for (const bool posted : {false, true}) {
    VerbsWorld w({.dma_buf = true}, true);
    w.fake->posted = posted;
    {
      const testing::LogFile log(kInfo);
      VerbsNodes nodes(w);
      REQUIRE(nodes.lane != nullptr);
      check_all_ways(w.world, nodes);
      const uint64_t before = w.world.fake.calls("StreamWriteValue64");
      for (uint64_t i = 1; i <= 10; ++i) {
        REQUIRE(nodes.lane->signal({nodes.gpu.get(), 8}, i, nodes.diagnostics));
        nodes.await(*nodes.on_gpu, 8, i);
      }
      CHECK(w.fake->reads > 0);
      CHECK(w.fake_gdr->mapped == 1);  // all counts of the case are on one page
      CHECK(w.fake_gdr->pins == 1);
      CHECK(w.world.fake.calls("StreamWriteValue64") == before);
      CHECK(log.lines(kGdrCopy) == 1);
      CHECK(log.lines(kWrites + "its own function (fake0 is no mlx5 device)" + kRead) == 1);
    }
    w.check_clean();
  }
}

TEST_CASE("signals to gpus: data-direct functions, whose writes only their own reads order") {
  for (const bool with_gdrcopy : {false, true}) {
    for (const bool by_pci : {false, true}) {
      VerbsWorld w({.dma_buf = true, .by_pci = by_pci}, with_gdrcopy);
      w.fake->mlx5 = true;
      w.fake->posted = true;
      {
        const testing::LogFile log(kInfo);
        VerbsNodes nodes(w);
        REQUIRE(nodes.lane != nullptr);
        check_all_ways(w.world, nodes);
        CHECK(w.fake->data_direct == 2);  // the far one's memory, and the near one's to send from
        CHECK(w.fake->direct_reads > 0);
        CHECK(w.fake->direct_reads == w.fake->reads);
        const int64_t asked = (by_pci ? 2 : 4) + w.fake_gdr->mapped;
        CHECK(w.world.fake.calls("MemGetHandleForAddressRange") == static_cast<uint64_t>(asked));
        CHECK(log.lines(kWrites + "its data-direct function /devices/direct/fake0" + kRead) == 1);
        CHECK(log.lines(kGdrCopy) == (with_gdrcopy ? 1 : 0));
      }
      w.check_clean();
    }
  }
}

TEST_CASE("signals to gpus: memory inside a page goes by the other way, and both are read") {
  VerbsWorld w({.dma_buf = true}, true);
  w.fake->mlx5 = true;
  w.fake->posted = true;
  {
    VerbsNodes nodes(w);
    REQUIRE(nodes.lane != nullptr);
    constexpr uint64_t kBegin = 4096 + 64, kBytes = 8192;
    const auto handle =
        nodes.far->export_memory(nodes.on_gpu->data() + kBegin, kBytes, nodes.diagnostics);
    REQUIRE(handle);
    const auto piece = nodes.near->reach_memory(*handle, nodes.diagnostics);
    REQUIRE(piece != nullptr);
    for (uint64_t i = 1; i <= 20; ++i) {
      const auto inside = pattern(kBytes, i), beside = pattern(4096, ~i);
      std::memcpy(nodes.pinned->data(), inside.data(), kBytes);
      std::memcpy(nodes.pinned->data() + kBytes, beside.data(), beside.size());
      REQUIRE(nodes.lane->put({piece.get(), 0}, nodes.pinned->data(), kBytes, nodes.diagnostics));
      REQUIRE(nodes.lane->put({nodes.gpu.get(), 65536}, nodes.pinned->data() + kBytes,
                              beside.size(), nodes.diagnostics));
      REQUIRE(nodes.lane->signal({nodes.gpu.get(), 0}, i, nodes.diagnostics));
      nodes.await(*nodes.on_gpu, 0, i);
      REQUIRE((nodes.there(*nodes.on_gpu, kBegin, kBytes) == inside));
      REQUIRE((nodes.there(*nodes.on_gpu, 65536, beside.size()) == beside));
    }
    CHECK(w.fake->direct_reads == 20);
    CHECK(w.fake->reads == 40);
    CHECK(nodes.text() == "");
  }
  w.check_clean();
}

TEST_CASE("signals to gpus: where there is no data-direct function, and why") {
  const auto check = [](VerbsWorld& w, const std::string& why) {
    {
      const testing::LogFile log(kInfo);
      VerbsNodes nodes(w);
      REQUIRE(nodes.lane != nullptr);
      CHECK(w.fake->data_direct == 0);
      INFO(log.text());
      CHECK(log.lines(kWrites + "its own function (" + why + ")" + kRead) == 1);
      CHECK(nodes.text() == "");
    }
    w.check_clean();
  };
  VerbsWorld w({.dma_buf = true});
  SECTION("the library is not there") {
    const SetVariable none("MSCCLC_MLX5_SO", "libno_such.so");
    check(w, "libno_such.so: cannot open shared object file: No such file or directory");
  }
  SECTION("the library is another, or too old") {
    const SetVariable other("MSCCLC_MLX5_SO", "libc.so.6");
    check(w, "libc.so.6 knows of no data-direct functions: it is too old, or another library");
  }
  w.fake->mlx5 = true;
  SECTION("the device has none") {
    w.fake->path_error = ENODEV;
    check(w, "fake0 has no data-direct function");
  }
  SECTION("its path is too long") {
    w.fake->path_error = ENOSPC;
    check(w, "the data-direct function of fake0 cannot be found: No space left on device (28)");
  }
  SECTION("it takes no memory") {
    w.fake->failing_call = "mlx5_reg_dmabuf_mr";
    check(w,
          "the data-direct function of fake0 takes no dma-buf of 2097152 bytes: Cannot allocate "
          "memory (12)");
  }
}

TEST_CASE("signals to gpus: counts that GDRCopy cannot map are set by a stream") {
  for (const char* const call : {"pin_buffer", "map", "get_info_v2"}) {
    VerbsWorld w({.dma_buf = true}, true);
    w.fake->posted = true;
    w.fake_gdr->failing_call = call;
    {
      const testing::LogFile log(kInfo);
      VerbsNodes nodes(w);
      REQUIRE(nodes.lane != nullptr);
      check_all_ways(w.world, nodes);
      CHECK(w.world.fake.calls("StreamWriteValue64") > 0);
      CHECK(w.fake_gdr->pins == 0);
      CHECK(log.lines("are set by a stream (GDRCopy cannot " +
                      std::string(call == std::string("map") ? "map" : "pin") +
                      " 65536 bytes: Cannot allocate memory (12))") ==
            (call == std::string("get_info_v2") ? 0 : 1));
    }
    w.check_clean();
  }
}

TEST_CASE("signals to gpus: counts after copies are set by the copies' stream") {
  for (const bool deferred : {false, true}) {
    VerbsWorld w({.deferred = deferred, .dma_buf = true}, true);
    w.fake->failing_call = "reg_dmabuf_mr";  // what comes is copied through host memory
    {
      VerbsNodes nodes(w);
      REQUIRE(nodes.lane != nullptr);
      for (uint64_t i = 1; i <= 9; ++i) {
        const auto data = pattern(300'000, i);
        std::memcpy(nodes.pinned->data(), data.data(), data.size());
        REQUIRE(nodes.lane->put({nodes.gpu.get(), 4096}, nodes.pinned->data(), data.size(),
                                nodes.diagnostics));
        REQUIRE(nodes.lane->signal({nodes.gpu.get(), 0}, i, nodes.diagnostics));
        REQUIRE(nodes.lane->flush(nodes.diagnostics));
        CHECK(nodes.word(*nodes.on_gpu, 0) == i);
        REQUIRE((nodes.there(*nodes.on_gpu, 4096, data.size()) == data));
      }
      CHECK(w.fake->reads == 0);
      CHECK(w.fake_gdr->mapped == (deferred ? 0 : 1));
    }
    w.check_clean();
  }
}

TEST_CASE("signals to gpus: MSCCLC_FORCE_DISABLE_GDR switches all of it off") {
  VerbsWorld w({.dma_buf = true}, true);
  w.fake->mlx5 = true;
  const SetVariable disabled("MSCCLC_FORCE_DISABLE_GDR", "1");
  {
    const testing::LogFile log(kInfo);
    VerbsNodes nodes(w);
    REQUIRE(nodes.lane != nullptr);
    nodes.said = nodes.text();  // that memory is staged
    check_all_ways(w.world, nodes);
    CHECK(w.fake->data_direct == 0);
    CHECK(w.fake->reads == 0);
    CHECK(w.fake_gdr->mapped == 0);
    CHECK(w.fake_gdr->connections == 0);
    CHECK(log.lines("counts of cuda:1 are set by its streams (no GDRCopy: "
                    "MSCCLC_FORCE_DISABLE_GDR is set)") == 1);
  }
  w.check_clean();
}

TEST_CASE("signals to gpus: GDRCopy that cannot be opened is named, and not missed") {
  VerbsWorld w({.dma_buf = true}, true);
  w.fake_gdr->failing_call = "open";
  {
    const testing::LogFile log(kInfo);
    VerbsNodes nodes(w);
    REQUIRE(nodes.lane != nullptr);
    REQUIRE(nodes.lane->signal({nodes.gpu.get(), 8}, 7, nodes.diagnostics));
    nodes.await(*nodes.on_gpu, 8, 7);
    CHECK(
        log.lines("counts of cuda:1 are set by its streams (no GDRCopy: GDRCopy's driver (gdrdrv) "
                  "is not loaded, is too old, or may not be used)") == 1);
  }
  w.check_clean();
}

// The read is what keeps data before the count: where it cannot be had the count is not set.
TEST_CASE("signals to gpus: without the read there is no count, and both ends say why") {
  VerbsWorld w({.dma_buf = true}, true);
  {
    VerbsNodes nodes(w);
    REQUIRE(nodes.lane != nullptr);
    w.fake->failing_call = "create_qp";
    const uint64_t before = nodes.word(*nodes.on_gpu, 0);
    const bool given = nodes.lane->signal({nodes.gpu.get(), 0}, 1, nodes.diagnostics);
    CHECK(!(given && nodes.lane->flush(nodes.diagnostics)));
    CHECK_THAT(nodes.far_reports.wait(),
               Catch::StartsWith("the lane of rank 5 brings orders that cannot be carried out: no "
                                 "queue pair of fake0: "));
    CHECK(nodes.word(*nodes.on_gpu, 0) == before);
    CHECK(w.fake_gdr->mapped == 0);
  }
  w.check_clean();
}

}  // namespace
}  // namespace mscclc::cuda
