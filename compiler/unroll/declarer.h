// Declarations of a rank body: evaluated in the first sweep over the bodies. (In the second they
// are only bound to their names, which UnrollScope does.)
#pragma once

#include <vector>

#include "compiler/unroll/header_lines.h"

namespace mscclc {

class Declarer {
 public:
  Declarer(UnrollScope& scope, const HeaderLines& header)
      : scope_(scope),
        ast_(scope.ast),
        evaluator_(scope.evaluator),
        builder_(scope.builder),
        header_(header),
        values_(scope) {}

  /// A statement of a body; those that declare nothing are passed over.
  void declare(const ast::Stmt& s);

 private:
  bool dimension(const ast::Expr& e, Dim& out);
  bool buffer_dims(const ast::BufferDecl& s, std::vector<Dim>& dims);
  bool buffer_rows(ast::Array<const ast::Binder> dims, uint32_t at, Rows& out);
  bool declare_buffer(const ast::BufferDecl& s, const BufferOptions& options);
  bool packets(const ast::Expr& e, PacketFormat& out);
  bool row_form(const ast::Expr& e, rows::Form& out);
  void buffer(const ast::BufferDecl& s);
  void channel(const ast::ChannelDecl& s);
  bool one_channel(const ast::ChannelDecl& s, ChannelKind kind);
  void semaphore(const ast::SemaphoreDecl& s);
  template <class F>
  bool each_key(ast::Array<const ast::Binder> keys, F body);

  UnrollScope& scope_;
  const ast::Ast& ast_;
  Evaluator& evaluator_;
  Builder& builder_;
  const HeaderLines& header_;
  OptionValues values_;
  std::vector<int64_t> key_values_;  ///< of the member that is declared
  std::vector<int64_t> far_keys_;    ///< of the end that it names
};

}  // namespace mscclc
