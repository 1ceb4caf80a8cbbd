// A program that writes programs: a broadcast along the shortest paths of any network of links,
// which the text form could not compute. The links come from the command line, "0-1 1-2 1-3 …":
//
//   bazel run //compiler/examples:tree_broadcast -- 0-1 1-2 1-3 3-4
//
// prints the program's IR, which `mscclc compile` takes.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "compiler/builder/builder.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/print/print.h"

namespace {

using namespace mscclc;

using Links = std::vector<std::vector<uint32_t>>;  // neighbours of each rank

/// Parent of each rank on a shortest path from `root`; the root is its own.
std::vector<uint32_t> shortest_paths(const Links& links, uint32_t root) {
  std::vector<uint32_t> parent(links.size(), kNone), queue = {root};
  parent[root] = root;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const uint32_t next : links[queue[i]]) {
      if (parent[next] != kNone) continue;
      parent[next] = queue[i];
      queue.push_back(next);
    }
  }
  return parent;
}

Links read_links(int argc, char** argv) {
  Links links(2);
  for (int i = 1; i < argc; ++i) {
    char* end = nullptr;
    const auto a = static_cast<uint32_t>(std::strtoul(argv[i], &end, 10));
    const auto b = static_cast<uint32_t>(*end == '-' ? std::strtoul(end + 1, nullptr, 10) : a);
    links.resize(std::max<size_t>(links.size(), std::max(a, b) + 1));
    links[a].push_back(b);
    links[b].push_back(a);
  }
  return links;
}

/// Each rank waits for its parent, then hands the message to its children, unit by unit.
std::optional<Program> broadcast(const std::vector<uint32_t>& parent, uint32_t root,
                                 Diagnostics& diagnostics, Sources& sources) {
  const auto ranks = static_cast<uint32_t>(parent.size());
  Builder b(diagnostics, nullptr, &sources);
  b.program().name = "tree_broadcast";
  b.collective({.kind = CollectiveKind::broadcast, .ranks = ranks, .root = root});
  const NameId link = b.intern("link");
  for (uint32_t r = 0; r < ranks; ++r) {
    b.rank(r);
    for (uint32_t q = 0; q < ranks; ++q) {
      const bool joined = q != r && (parent[q] == r || parent[r] == q);
      if (joined) b.channel(ChannelKind::memory, link, std::vector<int64_t>{q}, q);
    }
  }
  for (uint32_t r = 0; r < ranks; ++r) {
    b.rank(r);
    b.block(0);
    // A rank says that it is in this call before its parent writes to it.
    b.at({{"r", r}});
    if (r != root) b.op(OpKind::signal, {b.end("link", {parent[r]})}, {}, {.relaxed = true});
    for (uint32_t q = 0; q < ranks; ++q) {
      if (q != root && parent[q] == r)
        b.op(OpKind::wait, {b.end("link", {q})}, {}, {.relaxed = true});
    }
    b.pipeline(256 * 1024);
    if (r == root) b.op(OpKind::copy, {b.local("output")}, {b.local("input")});
    if (r != root) b.op(OpKind::wait, {b.end("link", {parent[r]})});
    for (uint32_t q = 0; q < ranks; ++q) {
      if (q == root || parent[q] != r) continue;
      b.at({{"r", r}, {"q", q}});
      b.op(OpKind::put, {b.far("link", {q}, "output")}, {b.local("output")});
      b.op(OpKind::signal, {b.end("link", {q})});
    }
    b.end_pipeline();
  }
  return b.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const Links links = read_links(argc, argv);
  const std::vector<uint32_t> parent = shortest_paths(links, 0);
  Sources sources;
  Diagnostics diagnostics;
  const auto program = broadcast(parent, 0, diagnostics, sources);
  std::fputs(render_text(diagnostics, sources).c_str(), stderr);
  if (!program) return 1;
  std::fputs(print_ir(*program).c_str(), stdout);
  return 0;
}
