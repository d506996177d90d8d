// Halves as bytes, so that they can cross between ranks.
//
// A thousand names of a model share most of their bytes with the name before. They take about
// twelve bytes each, with shape, dtype and layout.
#ifndef SLUICE_SRC_PLAN_CONNECT_HALF_CODE_H_
#define SLUICE_SRC_PLAN_CONNECT_HALF_CODE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/connect/half.h"

namespace sluice {

// The format of encoded halves. Ranks of other builds may have another one.
inline constexpr int kHalfFormat = 2;

// `half` has passed CheckHalf. Equal halves have equal bytes.
std::string EncodeHalf(const Half& half);

// The room that is left for further halves, while halves are read one after the other.
struct HalfRoom {
  int64_t tensors = kHalfTensorsMax;
  int64_t kinds = kHalfKindsMax;
  int64_t names_bytes = kHalfNamesBytesMax;
  int64_t mesh_ranks = kHalfMeshRanksMax;
  int64_t boxes = kHalfBoxesMax;
};

// Takes what the half needs out of `room`. InvalidArgument: these are no bytes of a half of a job
// of `ranks` ranks. ResourceExhausted: there is no room. The half has yet to pass CheckHalf.
absl::StatusOr<Half> DecodeHalf(absl::string_view bytes, int ranks, HalfRoom* room);

// Equal for equal layouts alone. `layout` has a placement for each mesh dimension, and is no slice.
std::string EncodeLayout(const Layout& layout);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_HALF_CODE_H_
