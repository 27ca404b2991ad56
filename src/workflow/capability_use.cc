// SPDX-License-Identifier: Apache-2.0
// The warnings half of capability.h. An AST shows no types, so a warning says what happens if the
// receiver is of the type that lacks the method; what the body itself defines is left alone.
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "errors/body.h"
#include "workflow/body_check.h"
#include "workflow/capability.h"

namespace caisson::workflow {
namespace {

using python::As;
using python::ConstantKind;
using python::ExprContext;
using python::ExprKind;
using python::NodeRef;

struct MissingMethod {
  std::string_view name;
  std::string_view types;
  std::string_view instead;
};

#include "workflow/capability_table.inc"

static_assert(kProbedArtifactSha256 == kAllowlistArtifactSha256,
              "the capabilities and the builtins allowlist come from different artifacts");

const MissingMethod* FindMissing(std::string_view name) {
  const auto* found = std::ranges::lower_bound(kMissingMethods, name, {}, &MissingMethod::name);
  return found != std::end(kMissingMethods) && found->name == name ? found : nullptr;
}

std::string_view NameOf(const python::Expr* expr) {
  const auto* name = python::IsA<python::Name>(expr);
  return name != nullptr ? name->id : std::string_view();
}

const python::Constant* StringConstant(const python::Expr* expr) {
  const auto* constant = python::IsA<python::Constant>(expr);
  return constant != nullptr && constant->constant == ConstantKind::kStr ? constant : nullptr;
}

const python::Keyword* FindKeyword(const python::Call& call, std::string_view name) {
  const auto found = std::ranges::find(call.keywords, name, &python::Keyword::arg);
  return found == call.keywords.end() ? nullptr : *found;
}

// Native methods that take no keyword arguments in the artifact.
constexpr std::string_view kPositionalOnly[] = {"decode", "encode", "from_bytes", "replace",
                                                "rsplit", "split",  "to_bytes"};
// Special methods that the artifact never calls.
constexpr std::string_view kNeverCalled[] = {"__format__", "__index__", "__init_subclass__",
                                             "__missing__", "__round__"};

class UseChecker {
 public:
  UseChecker(std::span<const NodeRef> nodes, std::string_view node_id, std::vector<Diagnostic>& out)
      : prefix_("CodeNode '" + std::string(node_id) + "' "), out_(out) {
    for (const NodeRef node : nodes) CollectNames(node);
    for (const NodeRef node : nodes) CollectLists(node);
  }

  void Check(NodeRef node) {
    if (node.stmt() != nullptr) CheckStmt(*node.stmt());
    if (node.expr() == nullptr) return;
    switch (node.expr()->kind) {
      case ExprKind::kAttribute:
        return CheckAttribute(*As<python::Attribute>(node.expr()));
      case ExprKind::kCall:
        return CheckCall(*As<python::Call>(node.expr()));
      case ExprKind::kSubscript:
        return CheckSubscript(*As<python::Subscript>(node.expr()));
      case ExprKind::kFormattedValue:
        return CheckFormatSpec(*As<python::FormattedValue>(node.expr()));
      default:
        return;
    }
  }

 private:
  void Warn(ErrorCode code, SourceSpan span, std::string message, std::string hint) {
    out_.push_back({.code = code,
                    .severity = Severity::kWarning,
                    .span = span,
                    .message = prefix_ + std::move(message),
                    .hint = std::move(hint)});
  }
  void WarnMissing(SourceSpan span, const std::string& what, std::string hint) {
    Warn(errors::kBodyMissingMethod, span,
         "body uses " + what + ", which the MicroPython runtime lacks", std::move(hint));
  }
  void WarnDiffers(SourceSpan span, std::string what, std::string hint) {
    Warn(errors::kBodyDiffers, span, "body: " + std::move(what) + " under the MicroPython runtime",
         std::move(hint));
  }

  // What the body itself defines: attributes that it sets and methods of its classes, and
  // variables.
  void CollectNames(NodeRef node) {
    if (const auto* cls = python::IsA<python::ClassDef>(node.stmt())) {
      for (const python::Stmt* member : cls->body) CollectMember(*member);
    }
    const auto* attribute = python::IsA<python::Attribute>(node.expr());
    if (attribute != nullptr && attribute->ctx == ExprContext::kStore) own_.insert(attribute->attr);
    const auto* name = python::IsA<python::Name>(node.expr());
    if (name != nullptr && name->ctx == ExprContext::kStore) stored_[name->id] += 1;
    if (node.arg() != nullptr) stored_[node.arg()->arg] += 1;
  }

  // Variables that a statement gives a list.
  void CollectLists(NodeRef node) {
    if (const auto* assign = python::IsA<python::Assign>(node.stmt())) {
      for (const python::Expr* target : assign->targets) CollectList(*target, *assign->value);
    } else if (const auto* annotated = python::IsA<python::AnnAssign>(node.stmt())) {
      if (annotated->value != nullptr) CollectList(*annotated->target, *annotated->value);
    } else if (const auto* named = python::IsA<python::NamedExpr>(node.expr())) {
      CollectList(*named->target, *named->value);
    }
  }

  // `a = a[1:]` gives a list if all else that is stored in `a` is one, which is what is asked for.
  void CollectList(const python::Expr& target, const python::Expr& value) {
    if (target.kind != ExprKind::kName) return;
    assumed_ = NameOf(&target);
    if (IsList(value)) listed_[assumed_] += 1;
    assumed_ = {};
  }

  void CollectMember(const python::Stmt& member) {
    if (const auto* method = python::IsA<python::FunctionDef>(&member)) own_.insert(method->name);
    if (const auto* assign = python::IsA<python::Assign>(&member)) {
      for (const python::Expr* target : assign->targets) own_.insert(NameOf(target));
    }
  }

  // Whether `expr` is a list (or a range, which can be cut alike) whatever its names hold.
  bool IsList(const python::Expr& expr) const {
    switch (expr.kind) {
      case ExprKind::kList:
      case ExprKind::kListComp:
        return true;
      case ExprKind::kCall:
        return IsCallForList(*As<python::Call>(&expr));
      case ExprKind::kBinOp: {
        const auto* operation = As<python::BinOp>(&expr);
        if (operation->op != python::BinaryOperator::kAdd &&
            operation->op != python::BinaryOperator::kMult) {
          return false;
        }
        return IsSurelyList(*operation->left) || IsSurelyList(*operation->right);
      }
      case ExprKind::kSubscript: {
        const auto* subscript = As<python::Subscript>(&expr);
        return subscript->slice->kind == ExprKind::kSlice && IsSurelyList(*subscript->value);
      }
      case ExprKind::kIfExp: {
        const auto* choice = As<python::IfExp>(&expr);
        return IsSurelyList(*choice->body) && IsSurelyList(*choice->orelse);
      }
      case ExprKind::kNamedExpr:
        return IsSurelyList(*As<python::NamedExpr>(&expr)->value);
      default:
        return false;
    }
  }

  bool IsCallForList(const python::Call& call) const {
    if (const std::string_view callee = NameOf(call.func); !callee.empty()) {
      return !stored_.contains(callee) &&
             (callee == "list" || callee == "sorted" || callee == "range");
    }
    const auto* method =
        python::IsA<python::Attribute>(static_cast<const python::Expr*>(call.func));
    if (method == nullptr || own_.contains(method->attr)) return false;
    if (method->attr == "copy") return IsSurelyList(*method->value);
    return method->attr == "split" || method->attr == "rsplit" || method->attr == "splitlines";
  }

  // A list, or a variable that every store gives one.
  bool IsSurelyList(const python::Expr& expr) const {
    if (IsList(expr)) return true;
    const std::string_view name = NameOf(&expr);
    if (name.empty()) return false;
    if (name == assumed_) return true;
    const auto listed = listed_.find(name);
    const auto stored = stored_.find(name);
    return listed != listed_.end() && stored != stored_.end() && listed->second == stored->second;
  }

  void CheckStmt(const python::Stmt& stmt) {
    const auto* cls = python::IsA<python::ClassDef>(&stmt);
    if (cls == nullptr) return;
    for (const python::Keyword* keyword : cls->keywords) {
      WarnMissing(keyword->span, "a class keyword ('" + std::string(keyword->arg) + "')",
                  "write the class without metaclass and keywords");
    }
    for (const python::Stmt* member : cls->body) {
      const auto* method = python::IsA<python::FunctionDef>(member);
      if (method == nullptr ||
          std::ranges::find(kNeverCalled, method->name) == std::end(kNeverCalled)) {
        continue;
      }
      WarnDiffers(method->span, "'" + std::string(method->name) + "' is never called",
                  "call a method of another name yourself");
    }
  }

  void CheckAttribute(const python::Attribute& attribute) {
    const MissingMethod* missing = FindMissing(attribute.attr);
    if (missing == nullptr || attribute.ctx != ExprContext::kLoad) return;
    if (NameOf(attribute.value) == "self" || own_.contains(attribute.attr)) return;
    WarnMissing(attribute.span,
                "'." + std::string(missing->name) + "' (of " + std::string(missing->types) + ")",
                "use " + std::string(missing->instead));
  }

  void CheckCall(const python::Call& call) {
    if (const std::string_view name = NameOf(call.func); !name.empty()) {
      if (!stored_.contains(name)) CheckBuiltinCall(call, name);
    } else if (const auto* method =
                   python::IsA<python::Attribute>(static_cast<const python::Expr*>(call.func))) {
      if (!own_.contains(method->attr)) CheckMethodCall(call, *method);
    }
  }

  void CheckBuiltinCall(const python::Call& call, std::string_view name) {
    if (name == "round" && call.args.size() + call.keywords.size() > 1) {
      WarnDiffers(call.span, "round() to digits is inexact in some last places",
                  "use float('%.2f' % x)");
    } else if (name == "sorted" && FindKeyword(call, "key") != nullptr) {
      WarnUnstable(call.span);
    } else if (name == "zip" && FindKeyword(call, "strict") != nullptr) {
      WarnMissing(call.span, "zip(strict=...)", "compare the lengths yourself");
    } else if (name == "sum" && FindKeyword(call, "start") != nullptr) {
      WarnMissing(call.span, "sum(start=...)", "give the start without its name");
    } else if (name == "int" && FindKeyword(call, "base") != nullptr) {
      WarnMissing(call.span, "int(base=...)", "give the base without its name");
    } else if (name == "slice") {
      WarnMissing(call.span, "slice(...)", "write the slice where it is used: a[start:stop]");
    } else if (name == "iter" && call.args.size() > 1) {
      WarnMissing(call.span, "iter(function, sentinel)", "use a while loop");
    } else if (name == "isinstance" && call.args.size() == 2) {
      CheckIsInstance(call);
    } else if (name == "pow" && call.args.size() == 3 && call.args[1]->kind == ExprKind::kUnaryOp) {
      WarnDiffers(call.span, "pow() with a negative exponent and a modulus gives 0",
                  "compute the inverse yourself");
    }
  }

  void CheckIsInstance(const python::Call& call) {
    const python::Expr* type = call.args[1];
    if (type->kind == ExprKind::kBinOp) {
      return WarnMissing(type->span, "a union in isinstance()",
                         "use a tuple: isinstance(x, (A, B))");
    }
    bool has_int = NameOf(type) == "int";
    if (const auto* tuple = python::IsA<python::Tuple>(type)) {
      const auto holds = [&](std::string_view name) {
        return std::ranges::any_of(tuple->elts,
                                   [&](const python::Expr* each) { return NameOf(each) == name; });
      };
      has_int = holds("int") && !holds("bool");
    }
    if (!has_int) return;
    WarnDiffers(call.span, "isinstance(x, int) is False for True and False",
                "use isinstance(x, (int, bool)) where booleans count as numbers");
  }

  void WarnUnstable(SourceSpan span) {
    WarnDiffers(span, "sorting by a key does not keep the order of equal elements",
                "add a tie-breaker to the key, such as the index");
  }

  void CheckMethodCall(const python::Call& call, const python::Attribute& method) {
    const std::string_view name = method.attr;
    if (!call.keywords.empty() &&
        std::ranges::find(kPositionalOnly, name) != std::end(kPositionalOnly)) {
      WarnMissing(call.keywords.front()->span, "keyword arguments of ." + std::string(name) + "()",
                  "give them by position");
    }
    if (name == "sort" && FindKeyword(call, "key") != nullptr) {
      WarnUnstable(call.span);
    } else if (name == "popitem" && call.args.empty()) {
      WarnDiffers(call.span, "popitem() does not take the last item",
                  "dicts keep no order; pop a key that you choose");
    } else if (name == "center" && call.args.size() > 1) {
      WarnMissing(call.span, "center() with a fill character", "build the padding yourself");
    } else if ((name == "union" || name == "intersection") && call.args.size() > 1) {
      WarnMissing(call.span, "." + std::string(name) + "() of several arguments",
                  "call it once per argument");
    } else if (name == "rsplit" && !call.args.empty() && IsNone(*call.args[0])) {
      WarnMissing(call.span, "rsplit(None, n)", "name the separator");
    } else if (name == "encode" || name == "decode") {
      CheckCodec(call, name);
    } else if (name == "format") {
      if (const python::Constant* text = StringConstant(method.value)) CheckFormat(*text);
    }
  }

  static bool IsNone(const python::Expr& expr) {
    const auto* constant = python::IsA<python::Constant>(&expr);
    return constant != nullptr && constant->constant == ConstantKind::kNone;
  }

  void CheckCodec(const python::Call& call, std::string_view name) {
    if (call.args.size() > 1) {
      WarnMissing(call.span, "an error handler of ." + std::string(name) + "()",
                  "clean the text before");
    }
    const python::Constant* codec = call.args.empty() ? nullptr : StringConstant(call.args[0]);
    if (codec == nullptr) return;
    static constexpr std::string_view kUtf8[] = {"UTF-8", "UTF8", "ascii", "utf-8", "utf8"};
    if (std::ranges::binary_search(kUtf8, codec->text)) return;
    WarnDiffers(codec->span, "the codec name is ignored: text is always UTF-8", "use UTF-8");
  }

  // "{0.x}" and "{0[k]}" are refused; "{:,.2f}" loses its comma.
  void CheckFormat(const python::Constant& format) {
    const std::string_view text = format.text;
    for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at)) {
      if (text.substr(at).starts_with("{{")) {
        at += 2;
        continue;
      }
      const std::size_t end = std::min(text.find('}', at), text.size());
      const std::string_view field = text.substr(at + 1, end - at - 1);
      const std::string_view name = field.substr(0, field.find_first_of(":!"));
      if (name.find_first_of(".[") != std::string_view::npos) {
        WarnMissing(format.span, "attributes or indexes in a format field",
                    "pass the value itself: '{}'.format(a.x)");
        return;
      }
      if (const auto colon = field.find(':'); colon != std::string_view::npos) {
        CheckSpecText(field.substr(colon + 1), format.span);
      }
      at = end;
    }
  }

  void CheckSpecText(std::string_view spec, SourceSpan span) {
    if (spec.find(',') == std::string_view::npos || spec.find('.') == std::string_view::npos)
      return;
    WarnDiffers(span, "the thousands separator is left out for floats",
                "format the integer part with ',' and append the decimals");
  }

  void CheckFormatSpec(const python::FormattedValue& field) {
    const auto* spec =
        python::IsA<python::JoinedStr>(static_cast<const python::Expr*>(field.format_spec));
    if (spec == nullptr) return;
    for (const python::Expr* part : spec->values) {
      if (const python::Constant* text = StringConstant(part))
        CheckSpecText(text->text, field.span);
    }
  }

  void CheckSubscript(const python::Subscript& subscript) {
    const auto* slice =
        python::IsA<python::Slice>(static_cast<const python::Expr*>(subscript.slice));
    if (slice == nullptr || slice->step == nullptr || IsNone(*slice->step)) return;
    const auto* step = python::IsA<python::Constant>(static_cast<const python::Expr*>(slice->step));
    if (step != nullptr && step->constant == ConstantKind::kInt && step->integer == 1) return;
    if (subscript.ctx != ExprContext::kLoad) {
      WarnMissing(subscript.span, "assignment to a slice with a step", "use a loop");
    } else if (!IsSurelyList(*subscript.value)) {
      WarnMissing(subscript.span, "a slice with a step on str, tuple or bytes",
                  "it works on lists and ranges only: ''.join(list(s)[::-1])");
    }
  }

  std::string prefix_;
  std::vector<Diagnostic>& out_;
  std::unordered_set<std::string_view> own_;
  std::unordered_map<std::string_view, int> listed_, stored_;
  std::string_view assumed_;  // a variable that counts as a list for now
};

}  // namespace

namespace internal {

void CheckGuestUse(std::span<const NodeRef> nodes, std::string_view node_id,
                   std::vector<Diagnostic>& out) {
  UseChecker checker(nodes, node_id, out);
  for (const NodeRef node : nodes) checker.Check(node);
}

}  // namespace internal
}  // namespace caisson::workflow
