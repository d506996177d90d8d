// The fake CUDA runtime's interface with the C++ overloads that are used.
#ifndef SLUICE_TESTS_FAKES_INCLUDE_CUDA_RUNTIME_H_
#define SLUICE_TESTS_FAKES_INCLUDE_CUDA_RUNTIME_H_

#include "cuda_runtime_api.h"

template <class T>
inline cudaError_t cudaMalloc(T** devPtr, size_t size) {
  return cudaMalloc(reinterpret_cast<void**>(devPtr), size);
}

#endif  // SLUICE_TESTS_FAKES_INCLUDE_CUDA_RUNTIME_H_
