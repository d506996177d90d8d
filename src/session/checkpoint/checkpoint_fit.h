// Checks that a checkpoint's tensors fit those that are asked for.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_FIT_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_FIT_H_

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "sluice/checkpoint.h"
#include "sluice/tensor.h"

namespace sluice {

// "[2,3]".
std::string ShapeText(absl::Span<const int64_t> shape);

// InvalidArgument: the checkpoint's tensor has another shape than `wanted`, or elements that cannot
// be cast to its dtype. No dimensions stand for {1}. `type`: the name of the elements' type;
// `dtype` is the same where this library computes with it.
absl::Status CheckFit(const CheckpointTensor& wanted, absl::Span<const int64_t> shape,
                      absl::string_view type, const std::optional<DType>& dtype);

// NotFound, with some of the names that are missing. `there`: the names that the checkpoint has.
absl::Status MissingError(const std::vector<std::string>& missing,
                          absl::Span<const absl::string_view> there);

// The same where a map by names, `there`, lacks some; OK where it lacks none.
template <typename ByName>
absl::Status CheckNoneMissing(const std::vector<std::string>& missing, const ByName& there) {
  if (missing.empty()) return absl::OkStatus();
  std::vector<absl::string_view> names;
  for (const auto& [name, value] : there) names.push_back(name);
  std::sort(names.begin(), names.end());
  return MissingError(missing, names);
}

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_FIT_H_
