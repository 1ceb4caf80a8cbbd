// Which options there are where, and how to find one. Their values are read where they are used.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ast/ast.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/ops.h"

namespace mscclc {

enum class OptionsOf : uint8_t {
  collective,
  select,
  launch,
  buffer,
  channel,
  pipeline,
  flags,
  op,
  ir_launch,  ///< these have more options in IR text
  ir_pipeline,
  ir_op,
};

/// Reports unknown and repeated options, options without a value that need one and the reverse.
[[nodiscard]] bool check_options(const ast::Ast& ast, ast::Array<const ast::Option> options,
                                 OptionsOf of, std::string_view what, Diagnostics& diagnostics);

/// True if there is such an option.
bool is_option(OptionsOf of, std::string_view name);

/// True if the option's value is words rather than an expression: `packets: LL16`.
bool takes_words(const ast::Option& option);

/// The packet format that an expression names by a bare word, which is no name then.
std::optional<PacketFormat> packet_format_word(const ast::Ast& ast, const ast::Expr& e);

/// "; did you mean 'f16'?", or else what there is.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known);

/// What `op` and `ops` take.
const std::vector<std::string_view>& reduce_names();

/// The option of this name, or nullptr.
const ast::Option* find_option(ast::Array<const ast::Option> options, ast::Symbol name);

}  // namespace mscclc
