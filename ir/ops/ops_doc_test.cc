// The committed page is the one that the tables give.
#include "ir/ops/ops_doc.h"

#include <catch2/catch.hpp>

#include "ir/support/read_file.h"

using namespace mscclc;

TEST_CASE("docs/ops.md is current (mscclc ops --format=markdown > docs/ops.md)") {
  CHECK(read_file("docs/ops.md").value() == ops_reference());
}

TEST_CASE("the page names everything") {
  const std::string page = ops_reference();
  for (const OpInfo& op : op_table()) {
    CHECK(page.find("| `" + std::string(op.name) + "` |") != std::string::npos);
  }
  for (const DtypeInfo& t : dtype_table()) {
    CHECK(page.find("| `" + std::string(t.name) + "` |") != std::string::npos);
  }
}

TEST_CASE("ops for the terminal") {
  const OpKind kinds[] = {OpKind::put_with_signal, OpKind::signal, OpKind::sync};
  CHECK(ops_text(kinds) ==
        "put_with_signal R* <- L=\n"
        "    write chunks at the far end, then signal it\n"
        "    channels: port\n"
        "    also: signals\n"
        "    made of: put + signal\n"
        "    wire name: pws\n"
        "signal C*\n"
        "    add one at the partner's end; publish what the block did before\n"
        "    channels: memory, port\n"
        "    also: signals\n"
        "    wire name: signal, rlxsignal\n"
        "sync\n"
        "    the threads of one block meet\n"
        "    also: syncs\n"
        "    wire name: nop\n");
  const std::string all = ops_text();
  for (const OpInfo& op : op_table()) CHECK(all.find(op.name) != std::string::npos);
}
