// Compares shapes, element types and names.
#include "session/checkpoint/checkpoint_fit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "session/checkpoint/checkpoint_input.h"
#include "tensor/cast.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// A name that another one ends with, behind a dot: "w" and "model.w", in either order.
bool IsTailOf(absl::string_view tail, absl::string_view name) {
  return absl::EndsWith(name, tail) && name.size() > tail.size() &&
         name[name.size() - tail.size() - 1] == '.';
}

}  // namespace

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::Status CheckFit(const CheckpointTensor& wanted, absl::Span<const int64_t> shape,
                      absl::string_view type, const std::optional<DType>& dtype) {
  const std::vector<int64_t> one = {1};
  if ((shape.empty() ? absl::MakeConstSpan(one) : shape) != LaidOutShape(wanted)) {
    return MakeError(absl::StatusCode::kInvalidArgument, TensorInWords(wanted.name), " has shape ",
                     ShapeText(shape), " in the checkpoint, not ", ShapeText(wanted.shape));
  }
  if (dtype && CastExists(*dtype, wanted.dtype)) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, TensorInWords(wanted.name), " is of ", type,
                   " in the checkpoint, which cannot be cast to ", DTypeName(wanted.dtype));
}

absl::Status MissingError(const std::vector<std::string>& missing,
                          absl::Span<const absl::string_view> there) {
  constexpr size_t kNamed = 3;
  ErrorText names;
  for (size_t i = 0; i < std::min(kNamed, missing.size()); ++i) {
    names.Add(i > 0 ? ", " : "", QuotedName(missing[i]));
  }
  if (missing.size() > kNamed) names.Add(", ...");
  for (size_t i = 0; i < std::min(kNamed, missing.size()); ++i) {
    const auto alike = std::find_if(there.begin(), there.end(), [&](absl::string_view name) {
      return IsTailOf(missing[i], name) || IsTailOf(name, missing[i]);
    });
    if (alike == there.end()) continue;
    names.Add("; it has ", QuotedName(*alike), ", which a rename from ", QuotedName(missing[i]),
              " would take");
    break;
  }
  return MakeError(absl::StatusCode::kNotFound, "the checkpoint lacks ", missing.size(),
                   missing.size() == 1 ? " tensor: " : " tensors: ", names);
}

}  // namespace sluice
