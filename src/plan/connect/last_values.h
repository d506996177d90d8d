// The last value of each enumeration that Connect takes, from callers and from other ranks.
#ifndef SLUICE_SRC_PLAN_CONNECT_LAST_VALUES_H_
#define SLUICE_SRC_PLAN_CONNECT_LAST_VALUES_H_

#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

inline constexpr DType kLastDType = DType::kC128;
inline constexpr Placement::Kind kLastPlacement = Placement::Kind::kPartial;
inline constexpr ReduceOp kLastOp = ReduceOp::kProduct;

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_LAST_VALUES_H_
