// The text form of placements.
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "sluice/layout.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr std::array<std::pair<absl::string_view, ReduceOp>, 5> kReduceOps = {{
    {"sum", ReduceOp::kSum},
    {"avg", ReduceOp::kAvg},
    {"max", ReduceOp::kMax},
    {"min", ReduceOp::kMin},
    {"product", ReduceOp::kProduct},
}};

absl::Status BadPlacement(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "' is not a placement; expected R, S(dim), SS(dim,pieces) or P(op) with op one of "
      "sum avg max min product"));
}

// The text between "NAME(" and ")", if `text` has this form.
bool TakeArguments(absl::string_view text, absl::string_view name, absl::string_view* arguments) {
  const size_t open = text.find('(');
  if (open == absl::string_view::npos || text.back() != ')') return false;
  if (absl::StripAsciiWhitespace(text.substr(0, open)) != name) return false;
  *arguments = absl::StripAsciiWhitespace(text.substr(open + 1, text.size() - open - 2));
  return true;
}

bool ParseDim(absl::string_view text, int* dim) {
  text = absl::StripAsciiWhitespace(text);
  // SimpleAtoi takes signs; a placement's numbers are plain digits.
  return !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text[0])) &&
         absl::SimpleAtoi(text, dim);
}

bool ParsePieces(absl::string_view text, int64_t* pieces) {
  text = absl::StripAsciiWhitespace(text);
  return !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text[0])) &&
         absl::SimpleAtoi(text, pieces);
}

}  // namespace

absl::StatusOr<Placement> ParsePlacement(absl::string_view text) {
  const absl::string_view packed = absl::StripAsciiWhitespace(text);
  absl::string_view arguments;
  if (packed == "R") return Placement::Replicate();
  if (TakeArguments(packed, "SS", &arguments)) {
    const std::vector<absl::string_view> parts = absl::StrSplit(arguments, ',');
    int dim = 0;
    int64_t pieces = 0;
    if (parts.size() != 2 || !ParseDim(parts[0], &dim) || !ParsePieces(parts[1], &pieces)) {
      return BadPlacement(text);
    }
    return Placement::StridedShard(dim, pieces);
  }
  if (TakeArguments(packed, "S", &arguments)) {
    int dim = 0;
    if (!ParseDim(arguments, &dim)) return BadPlacement(text);
    return Placement::Shard(dim);
  }
  if (TakeArguments(packed, "P", &arguments)) {
    for (const auto& [name, op] : kReduceOps) {
      if (arguments == name) return Placement::Partial(op);
    }
  }
  return BadPlacement(text);
}

absl::StatusOr<std::vector<Placement>> ParsePlacements(absl::string_view text) {
  std::vector<Placement> placements;
  if (absl::StripAsciiWhitespace(text).empty()) return placements;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    // A comma inside parentheses belongs to its placement.
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    SLUICE_ASSIGN_OR_RETURN(Placement placement, ParsePlacement(text.substr(begin, i - begin)));
    placements.push_back(placement);
    begin = i + 1;
  }
  return placements;
}

std::string PlacementName(const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::kReplicate:
      return "R";
    case Placement::Kind::kShard:
      return absl::StrCat("S(", placement.dim, ")");
    case Placement::Kind::kStridedShard:
      return absl::StrCat("SS(", placement.dim, ",", placement.split_factor, ")");
    case Placement::Kind::kPartial:
      break;
  }
  return absl::StrCat("P(", kReduceOps[static_cast<size_t>(placement.op)].first, ")");
}

}  // namespace sluice
