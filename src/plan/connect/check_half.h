// Checks whether a half makes sense by itself.
#ifndef SLUICE_SRC_PLAN_CONNECT_CHECK_HALF_H_
#define SLUICE_SRC_PLAN_CONNECT_CHECK_HALF_H_

#include "absl/status/status.h"
#include "plan/connect/half.h"

namespace sluice {

// OK, or InvalidArgument, which names the tensor. Tensors have names, each once among the sources
// and once among the targets. Layouts can hold their tensors, can be a source's or target's, and
// lie within the job's `ranks` ranks. Windows and the priority class exist. The half alone keeps
// within the limits of half.h. ResourceExhausted: it has too many boxes.
absl::Status CheckHalf(const Half& half, int ranks);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_CHECK_HALF_H_
