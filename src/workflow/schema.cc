// SPDX-License-Identifier: Apache-2.0
#include "workflow/schema.h"

#include <algorithm>
#include <string>
#include <utility>

#include "errors/schema.h"
#include "errors/workflow.h"
#include "workflow/literal.h"
#include "workflow/report.h"
#include "workflow/schema_json.h"
#include "workflow/schema_model.h"

namespace caisson::workflow {
namespace {

using python::As;
using python::ConstantKind;
using python::ExprKind;
using schema::Type;
using schema::TypeKind;
using schema::TypePtr;

// Lowering visits a class once for each place in a chain of references, and compares the members of
// a union with one another; both stay small in every schema that a person writes.
constexpr std::size_t kMaxReferenceDepth = 100;
constexpr std::size_t kMaxUnionMembers = 256;

constexpr std::string_view kOneDefault = ": Field(...) accepts at most one positional default";

bool IsString(const python::Stmt& stmt) {
  const auto* statement = python::IsA<python::ExprStmt>(&stmt);
  return statement != nullptr && StringLiteral(*statement->value).has_value();
}

SourceSpan ClassHeader(const python::ClassDef& cls) {
  const auto width = static_cast<std::uint32_t>(cls.name.size()) + 6;  // "class "
  return {cls.span.line, cls.span.column, cls.span.line, cls.span.column + width};
}

// The call of a default that is one, and whether it is Field(...).
bool IsFieldCall(const python::Call& call) {
  const auto* name = python::IsA<python::Name>(static_cast<const python::Expr*>(call.func));
  return name != nullptr && name->id == "Field";
}

// Keywords that the library no longer takes; the peer fails on them with a server error.
constexpr std::pair<std::string_view, std::string_view> kRemoved[] = {
    {"const", "use a Literal annotation"},
    {"regex", "use pattern"},
    {"unique_items", "remove it; JSON Schema's uniqueItems can be set by json_schema_extra"},
};

// The form of a default, and its value. The grammar pass reports what is wrong; Lower reads again
// what passed.
class DefaultReader {
 public:
  DefaultReader(std::string_view field, std::vector<Diagnostic>& out)
      : where_("field '" + std::string(field) + "'"), out_(out) {}

  std::optional<schema::FieldInfo> Read(const python::Expr* value) {
    schema::FieldInfo info;
    if (value == nullptr) return info;
    if (const auto* call = python::IsA<python::Call>(value)) return ReadCall(*call);
    info.default_value = Literal(*value);
    if (!info.default_value) return std::nullopt;
    return info;
  }

 private:
  std::optional<json::Value> Literal(const python::Expr& expr) {
    const std::size_t before = out_.size();
    auto value = LowerLiteral(expr, where_, CredentialPolicy::kForbid, nullptr, out_);
    for (std::size_t i = before; i < out_.size(); ++i) {
      if (out_[i].code == errors::kWorkflowLiteralUnevaluable) out_[i].peer_line = expr.span.line;
    }
    return value;
  }

  std::optional<schema::FieldInfo> ReadCall(const python::Call& call) {
    if (!IsFieldCall(call)) {
      AddError(out_, errors::kSchemaField, call.span,
               where_ + ": only Field(...) defaults are supported",
               "write a literal or Field(default=...)");
      return std::nullopt;
    }
    if (call.args.size() > 1) {
      AddError(out_, errors::kSchemaField, call.span, where_ + std::string(kOneDefault),
               "give the other values by keyword");
      return std::nullopt;
    }
    schema::FieldInfo info;
    bool good = true;
    if (!call.args.empty()) {
      info.default_value = Literal(*call.args[0]);
      good = info.default_value.has_value();
    }
    for (const python::Keyword* keyword : call.keywords) {
      if (!ReadKeyword(call, *keyword, info)) good = false;
    }
    if (!good || !CheckKeywords(call, info)) return std::nullopt;
    return info;
  }

  bool ReadKeyword(const python::Call& call, const python::Keyword& keyword,
                   schema::FieldInfo& info) {
    if (keyword.arg.data() == nullptr) {
      AddError(out_, errors::kSchemaField, keyword.span,
               where_ + ": Field(...) may not use ** unpacking", "write the keywords out")
          .peer_line = call.span.line;
      return false;
    }
    auto value = Literal(*keyword.value);
    if (!value) return false;
    info.options.Set(keyword.arg, *std::move(value));
    return true;
  }

  // What makes the library raise at once; the peer answers with a server error.
  bool CheckKeywords(const python::Call& call, schema::FieldInfo& info) {
    const auto given = [&](std::string_view name) {
      const json::Value* value = info.options.Find(name);
      return value != nullptr && !value->is_null();
    };
    const bool has_default = info.options.Contains("default");
    if (has_default && !call.args.empty())
      return Refuse(call, "gives its default twice", "give it once");
    for (const auto& [keyword, hint] : kRemoved) {
      if (given(keyword)) {
        return Refuse(call, "does not know '" + std::string(keyword) + "' any more", hint);
      }
    }
    if ((has_default || !call.args.empty()) && given("default_factory")) {
      return Refuse(call, "has both a default and a default_factory", "give one of them");
    }
    if (has_default) info.default_value = *info.options.Find("default");
    Rename(info, "min_items", "min_length");
    Rename(info, "max_items", "max_length");
    return true;
  }

  bool Refuse(const python::Call& call, std::string what, std::string_view hint) {
    AddOwnError(out_, errors::kSchemaField, call.span, where_ + ": Field(...) " + std::move(what),
                std::string(hint));
    return false;
  }

  static void Rename(schema::FieldInfo& info, std::string_view from, std::string_view to) {
    const json::Value* value = info.options.Find(from);
    const json::Value* other = info.options.Find(to);
    if (value == nullptr || value->is_null() || (other != nullptr && !other->is_null())) return;
    info.options.Set(to, json::Value(*value));
  }

  std::string where_;
  std::vector<Diagnostic>& out_;
};

// The annotated fields of a class in its order.
template <typename Visit>
void ForEachField(const python::ClassDef& cls, Visit visit) {
  for (const python::Stmt* member : cls.body) {
    const auto* assign = python::IsA<python::AnnAssign>(member);
    if (assign == nullptr || assign->target->kind != ExprKind::kName) continue;
    visit(*assign, As<python::Name>(static_cast<const python::Expr*>(assign->target))->id);
  }
}

void CheckMember(const python::ClassDef& cls, const python::Stmt& member,
                 std::vector<Diagnostic>& out) {
  const std::string name = "schema '" + std::string(cls.name) + "'";
  if (IsString(member)) return;
  const auto* assign = python::IsA<python::AnnAssign>(&member);
  if (assign == nullptr) {
    AddError(out, errors::kSchemaDeclaration, member.span,
             name + " may only declare annotated fields", "write 'field: type = default'");
    return;
  }
  const auto* target = python::IsA<python::Name>(static_cast<const python::Expr*>(assign->target));
  if (target == nullptr) {
    AddError(out, errors::kSchemaField, member.span,
             name + " fields must be simple annotated assignments", "write 'field: type'");
    return;
  }
  if (target->id.starts_with("_")) {
    AddError(out, errors::kSchemaField, target->span,
             name + " field '" + std::string(target->id) + "' may not start with '_'",
             "rename it; alias='_...' gives the property its name");
    return;
  }
  // `-True` is a value to the grammar and fails where the schema is used.
  std::vector<Diagnostic> found;
  DefaultReader(target->id, found).Read(assign->value);
  for (Diagnostic& each : found) {
    const bool is_call = assign->value->kind == ExprKind::kCall;
    if (each.code == errors::kWorkflowLiteralUnevaluable && !is_call) continue;
    out.push_back(std::move(each));
  }
}

}  // namespace

// Lowers one class and those that it refers to.
class SchemaLowering {
 public:
  using Classes = std::unordered_map<std::string_view, const python::ClassDef*>;
  SchemaLowering(const Classes& classes, std::vector<Diagnostic>& out)
      : classes_(classes), out_(out) {}

  std::optional<json::Value> Lower(std::string_view name) {
    const auto found = classes_.find(name);
    if (found == classes_.end()) {
      AddError(out_, errors::kSchemaUnknown, {}, "unknown schema '" + std::string(name) + "'",
               "define class " + std::string(name) + "(BaseModel)");
      return std::nullopt;
    }
    const python::ClassDef& cls = *found->second;
    if (!Build(cls)) return std::nullopt;
    std::string stray;
    auto schema = schema::Finish(models_, stray);
    if (!schema) {
      AddError(
          out_, errors::kSchemaField, ClassHeader(cls),
          "schema '" + std::string(name) + "' could not be lowered to JSON Schema: '" + stray + "'",
          "remove the \"$ref\"; refer to another schema class in the annotation")
          .peer_line = 0;
    }
    return schema;
  }

 private:
  // False when something is wrong with the class or one that it refers to. Each class once.
  bool Build(const python::ClassDef& cls) {
    if (const auto built = built_.find(cls.name); built != built_.end()) return built->second;
    if (std::ranges::find(stack_, cls.name) != stack_.end()) return ReportCycle(cls);
    if (stack_.size() >= kMaxReferenceDepth) return ReportDepth(cls);
    stack_.push_back(cls.name);
    std::vector<schema::Field> fields;
    const bool good = ReadFields(cls, fields) && AddModel(cls, fields);
    stack_.pop_back();
    built_[cls.name] = good;
    return good;
  }

  bool ReportCycle(const python::ClassDef& cls) {
    std::string cycle;
    for (std::string_view name : stack_) cycle.append(name).append(" -> ");
    cycle += cls.name;
    AddError(out_, errors::kSchemaRecursive, ClassHeader(cls),
             "recursive schema references are not supported: " + cycle,
             "use dict[str, Any] for the inner one");
    return false;
  }

  bool ReportDepth(const python::ClassDef& cls) {
    AddOwnError(out_, errors::kSchemaTooLarge, ClassHeader(cls),
                "schema classes refer to one another through more than " +
                    std::to_string(kMaxReferenceDepth) + " levels",
                "use dict[str, Any] for the inner ones");
    return false;
  }

  bool ReadFields(const python::ClassDef& cls, std::vector<schema::Field>& fields) {
    bool good = true;
    std::unordered_map<std::string_view, std::size_t> places;
    ForEachField(cls, [&](const python::AnnAssign& assign, std::string_view name) {
      const TypePtr type = ReadType(*assign.annotation);
      std::vector<Diagnostic> found;
      auto info = DefaultReader(name, found).Read(assign.value);
      for (Diagnostic& each : found) {
        // The others were reported by CheckGrammar.
        const bool is_call = assign.value->kind == ExprKind::kCall;
        if (each.code == errors::kWorkflowLiteralUnevaluable && !is_call) {
          out_.push_back(std::move(each));
        }
      }
      if (type == nullptr || !info) {
        good = false;
        return;
      }
      schema::Field field{name, assign.span, type, *std::move(info)};
      const auto [place, is_new] = places.try_emplace(name, fields.size());
      if (is_new) {
        fields.push_back(std::move(field));
      } else {
        fields[place->second] = std::move(field);
      }
    });
    return good;
  }

  bool AddModel(const python::ClassDef& cls, const std::vector<schema::Field>& fields) {
    std::vector<schema::BuildError> errors;
    std::vector<TypePtr> applied;
    for (const schema::Field& field : fields) {
      auto type = schema::ApplyOptions(field, errors);
      applied.push_back(type ? *std::move(type) : field.type);
      schema::CheckField(field, *applied.back(), errors);
    }
    if (!errors.empty()) return ReportBuild(cls, errors);
    models_.emplace_back(cls.name, schema::ModelSchema(cls.name, fields, applied, models_));
    return true;
  }

  void ReportBuildError(const python::ClassDef& cls, const schema::BuildError& error) {
    AddError(out_, errors::kSchemaField, error.span,
             "schema '" + std::string(cls.name) +
                 "' declares a field name that is not allowed: " + error.text,
             "change the field's name or the options of its Field(...)")
        .peer_line = cls.span.line;
  }

  // In the order of the library's phases; it stops at the first.
  bool ReportBuild(const python::ClassDef& cls, const std::vector<schema::BuildError>& errors) {
    using Phase = schema::BuildError::Phase;
    for (const Phase phase :
         {Phase::kNames, Phase::kTypes, Phase::kValidators, Phase::kSerializers}) {
      for (const schema::BuildError& error : errors) {
        if (error.phase == phase) ReportBuildError(cls, error);
      }
    }
    return false;
  }

  TypePtr Unsupported(const python::Expr& expr, std::string_view what) {
    AddError(out_, errors::kSchemaAnnotation, expr.span,
             "unsupported schema annotation" + std::string(what), AnnotationHint(expr));
    return nullptr;
  }

  static std::string AnnotationHint(const python::Expr& expr) {
    const auto* subscript = python::IsA<python::Subscript>(&expr);
    const auto* name = python::IsA<python::Name>(
        subscript != nullptr ? static_cast<const python::Expr*>(subscript->value) : &expr);
    const std::string_view id = name != nullptr ? name->id : std::string_view();
    if (id == "Optional") return "write 'T | None'";
    if (id == "Union") return "write 'A | B'";
    if (id == "List" || id == "tuple" || id == "Tuple" || id == "set" || id == "list") {
      return "write 'list[T]'";
    }
    if (id == "Dict" || id == "dict") return "write 'dict[str, T]'";
    if (id == "datetime" || id == "date" || id == "bytes") return "write 'str'";
    return "use str, int, float, bool, Any, None, A | B, list[T], dict[str, T], Literal[...] or a "
           "schema class of this file";
  }

  // nullptr after a diagnostic.
  TypePtr ReadType(const python::Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kName:
        return ReadName(*As<python::Name>(&expr));
      case ExprKind::kConstant:
        if (As<python::Constant>(&expr)->constant != ConstantKind::kNone) break;
        return Simple(TypeKind::kNone);
      case ExprKind::kBinOp: {
        const auto* operation = As<python::BinOp>(&expr);
        if (operation->op != python::BinaryOperator::kBitOr) break;
        return ReadUnion(*operation);
      }
      case ExprKind::kSubscript:
        return ReadSubscript(*As<python::Subscript>(&expr));
      default:
        break;
    }
    return Unsupported(expr, "");
  }

  static TypePtr Simple(TypeKind kind) { return std::make_shared<const Type>(Type{.kind = kind}); }

  TypePtr ReadName(const python::Name& name) {
    static constexpr std::pair<std::string_view, TypeKind> kSimple[] = {{"str", TypeKind::kStr},
                                                                        {"int", TypeKind::kInt},
                                                                        {"float", TypeKind::kFloat},
                                                                        {"bool", TypeKind::kBool},
                                                                        {"Any", TypeKind::kAny}};
    for (const auto& [id, kind] : kSimple) {
      if (name.id == id) return Simple(kind);
    }
    const auto found = classes_.find(name.id);
    if (found == classes_.end()) return Unsupported(name, " '" + std::string(name.id) + "'");
    if (!Build(*found->second)) return nullptr;
    return std::make_shared<const Type>(Type{.kind = TypeKind::kModel, .model = found->first});
  }

  TypePtr ReadUnion(const python::BinOp& operation) {
    std::vector<const python::Expr*> parts;  // from the last to the first
    const python::Expr* left = &operation;
    const python::BinOp* link = &operation;
    while (link != nullptr && link->op == python::BinaryOperator::kBitOr) {
      parts.push_back(link->right);
      left = link->left;
      link = python::IsA<python::BinOp>(left);
    }
    parts.push_back(left);
    if (parts.size() > kMaxUnionMembers) {
      AddOwnError(out_, errors::kSchemaTooLarge, operation.span,
                  "a union may have at most " + std::to_string(kMaxUnionMembers) + " members",
                  "use Literal[...] for values, or Any");
      return nullptr;
    }
    bool good = true;
    std::vector<TypePtr> types;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      types.push_back(ReadType(**part));
      good = good && types.back() != nullptr;
    }
    return good ? schema::MakeUnion(types) : nullptr;
  }

  TypePtr ReadSubscript(const python::Subscript& subscript) {
    const auto* base = python::IsA<python::Name>(static_cast<const python::Expr*>(subscript.value));
    if (base == nullptr) return Unsupported(subscript, "");
    if (base->id == "list") return ReadParts(TypeKind::kList, {subscript.slice});
    if (base->id == "dict") {
      const auto* pair =
          python::IsA<python::Tuple>(static_cast<const python::Expr*>(subscript.slice));
      if (pair == nullptr || pair->elts.size() != 2) return Unsupported(*subscript.slice, "");
      return ReadParts(TypeKind::kDict, {pair->elts[0], pair->elts[1]});
    }
    if (base->id == "Literal") return ReadLiteral(*subscript.slice);
    return Unsupported(subscript, " '" + std::string(base->id) + "[...]'");
  }

  TypePtr ReadParts(TypeKind kind, const std::vector<const python::Expr*>& parts) {
    Type type{.kind = kind};
    for (const python::Expr* part : parts) {
      TypePtr read = ReadType(*part);
      if (read == nullptr) return nullptr;
      type.parts.push_back(std::move(read));
    }
    return std::make_shared<const Type>(std::move(type));
  }

  TypePtr ReadLiteral(const python::Expr& slice) {
    const auto* tuple = python::IsA<python::Tuple>(&slice);
    json::Array values;
    bool good = true;
    const auto read = [&](const python::Expr& item) {
      const std::size_t before = out_.size();
      auto value = LowerLiteral(item, "schema literal", CredentialPolicy::kForbid, nullptr, out_);
      for (std::size_t i = before; i < out_.size(); ++i) {
        if (out_[i].code == errors::kWorkflowLiteralUnevaluable) out_[i].peer_line = item.span.line;
      }
      if (value) {
        values.push_back(*std::move(value));
      } else {
        good = false;
      }
    };
    if (tuple == nullptr) {
      read(slice);
    } else {
      for (const python::Expr* item : tuple->elts) read(*item);
    }
    return good ? schema::MakeLiteral(std::move(values)) : nullptr;
  }

  const Classes& classes_;
  std::vector<Diagnostic>& out_;
  std::vector<std::string_view> stack_;
  std::unordered_map<std::string_view, bool> built_;
  schema::Models models_;
};

bool IsSchemaClass(const python::ClassDef& cls) {
  if (cls.bases.size() != 1) return false;
  const auto* base = python::IsA<python::Name>(static_cast<const python::Expr*>(cls.bases[0]));
  return base != nullptr && base->id == "BaseModel";
}

Schemas::Schemas(const python::Module& module) {
  for (const python::Stmt* stmt : module.body) {
    const auto* cls = python::IsA<python::ClassDef>(stmt);
    if (cls != nullptr && IsSchemaClass(*cls)) classes_[cls->name] = cls;
  }
}

void Schemas::CheckGrammar(const python::ClassDef& cls, std::vector<Diagnostic>& out) {
  const std::string name = "schema '" + std::string(cls.name) + "'";
  if (!cls.decorator_list.empty()) {
    AddError(out, errors::kSchemaDeclaration, cls.decorator_list[0]->span,
             "decorators are not allowed on " + name, "remove the decorator")
        .peer_line = cls.span.line;
  }
  if (!cls.keywords.empty()) {
    AddError(out, errors::kSchemaDeclaration, cls.keywords[0]->span,
             "metaclass / class keywords are not allowed on " + name, "remove the keyword")
        .peer_line = cls.span.line;
  }
  for (const python::Stmt* member : cls.body) CheckMember(cls, *member, out);
}

std::optional<json::Value> Schemas::Lower(std::string_view name,
                                          std::vector<Diagnostic>& out) const {
  return SchemaLowering(classes_, out).Lower(name);
}

}  // namespace caisson::workflow
