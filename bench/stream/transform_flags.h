// The flags that say what is done to the elements of items.
#ifndef SLUICE_BENCH_STREAM_TRANSFORM_FLAGS_H_
#define SLUICE_BENCH_STREAM_TRANSFORM_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "sluice/stream.h"

namespace sluice::bench {

// As they were typed.
struct TransformFlags {
  std::string types;  // SRC:DST:SCALE:BIAS, or SRC:DST; empty: no transform
  std::string channel_scale;
  std::string channel_bias;
  std::string item_shape;
  std::string crop;
  bool planar = false;
};

// Nothing without a transform. InvalidArgument names the flag, or says what does not go together.
absl::StatusOr<absl::optional<ItemTransform>> ParseTransformFlags(const TransformFlags& flags);

// All of them in one line.
std::string TransformText(const TransformFlags& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_TRANSFORM_FLAGS_H_
