// Writes the emitted source of all row functions (row_cases.h) for the host's compiler, and a table
// of them; before that the library's as kernels for nvcc:
//
//   write KERNELS TABLE SOURCE...
#include <fstream>

#include "executor/rows/emit.h"
#include "tests/rows/row_cases.h"

namespace mscclc::rows {
namespace {

constexpr const char* kIncludes =
    "#include \"executor/rows/row_tree.h\"\n"
    "#include \"executor/rows/row_values.h\"\n"
    "#include \"tests/rows/host_block.h\"\n"
    "namespace mscclc::rows {\n";

std::string instance(size_t i, uint32_t chunk, bool warps) {
  return RowCase::symbol(i) + "_by_" + std::to_string(chunk) + (warps ? "_in_warps" : "");
}

/// Calls `each(chunk, warps)` for what is made of a case: with warps too, for the library.
template <class Each>
void each_instance(const std::vector<RowCase>& cases, size_t i, Each each) {
  for (const uint32_t chunk : cases[i].chunks) {
    each(chunk, false);
    if (i + kRandomRows < cases.size()) each(chunk, true);
  }
}

void write_source(std::ofstream out, const std::vector<RowCase>& cases, size_t begin, size_t end) {
  out << kIncludes;
  for (size_t i = begin; i < end; ++i) {
    out << emit(cases[i].function, cases[i].t, RowCase::symbol(i));
    each_instance(cases, i, [&](uint32_t chunk, bool warps) {
      out << "void " << instance(i, chunk, warps)
          << "(HostBlock& block, const HostRow& row, uint32_t columns) {\n"
          << (warps ? "  HostWarps warps(block);\n  " : "  ") << RowCase::symbol(i) << "<" << chunk
          << ">(" << (warps ? "warps" : "block") << ", row, columns);\n}\n";
    });
  }
  out << "}\n";
}

void write_table(std::ofstream out, const std::vector<RowCase>& cases) {
  out << kIncludes;
  std::string entries;
  for (size_t i = 0; i < cases.size(); ++i) {
    each_instance(cases, i, [&](uint32_t chunk, bool warps) {
      out << "void " << instance(i, chunk, warps) << "(HostBlock&, const HostRow&, uint32_t);\n";
      entries += "    {" + std::to_string(i) + ", " + std::to_string(chunk) +
                 (warps ? ", true, &" : ", false, &") + instance(i, chunk, warps) + "},\n";
    });
  }
  out << "const std::vector<KernelEntry>& row_kernels() {\n"
         "  static const std::vector<KernelEntry> all = {\n"
      << entries << "  };\n  return all;\n}\n}\n";
}

/// The library's, with eight columns a thread.
void write_kernels(std::ofstream out, const std::vector<RowCase>& cases) {
  out << "#include \"tests/rows/cuda_row.cuh\"\nnamespace mscclc::rows {\n";
  for (size_t i = 0; i < cases.size() - kRandomRows; ++i) {
    const std::string symbol = RowCase::symbol(i);
    out << emit(cases[i].function, cases[i].t, symbol) << "extern \"C\" __global__ void kernel_"
        << symbol << "(CudaRow row, uint32_t columns) {\n"
        << "  __shared__ float shared[1024];\n  CudaBlock block(shared);\n  " << symbol
        << "<8>(block, row, columns);\n}\n";
  }
  out << "}\n";
}

}  // namespace
}  // namespace mscclc::rows

int main(int argc, char** argv) {
  using namespace mscclc::rows;
  const std::vector<RowCase> cases = row_cases();
  write_kernels(std::ofstream(argv[1]), cases);
  write_table(std::ofstream(argv[2]), cases);
  const size_t sources = static_cast<size_t>(argc) - 3;
  const size_t each = (cases.size() + sources - 1) / sources;
  for (size_t s = 0; s < sources; ++s) {
    write_source(std::ofstream(argv[3 + s]), cases, std::min(cases.size(), s * each),
                 std::min(cases.size(), (s + 1) * each));
  }
  return 0;
}
