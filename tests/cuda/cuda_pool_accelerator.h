// A GPU whose tests have tensors in memory that other processes cannot open.
#ifndef SLUICE_TESTS_CUDA_CUDA_POOL_ACCELERATOR_H_
#define SLUICE_TESTS_CUDA_CUDA_POOL_ACCELERATOR_H_

#include <memory>

#include "sluice/accelerator.h"

namespace sluice::session_test {

// `inner`, of the fake CUDA runtime. The device that is opened first is the session's, and as
// inner's. Of later ones, which tests have for their tensors, two of three buffers are of a pool.
std::shared_ptr<Accelerator> WithPools(std::shared_ptr<Accelerator> inner);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_CUDA_CUDA_POOL_ACCELERATOR_H_
