// Prints docs/diagnostics.md.
#include <cstdio>

#include "ir/diagnostics/diagnostic_codes.h"

int main() { std::fputs(mscclc::code_reference().c_str(), stdout); }
