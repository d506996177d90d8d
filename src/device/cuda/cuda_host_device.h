// Marks functions that run on the GPU and on the host alike, so that host tests run what GPUs run.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_HOST_DEVICE_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_HOST_DEVICE_H_

#ifdef __CUDACC__
#define SLUICE_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define SLUICE_HOST_DEVICE inline
#endif

// Before a loop: to be unrolled on the GPU, so that arrays stay in registers; or not at all.
#ifdef __CUDA_ARCH__
#define SLUICE_UNROLL _Pragma("unroll")
#define SLUICE_NO_UNROLL _Pragma("unroll 1")
#else
#define SLUICE_UNROLL
#define SLUICE_NO_UNROLL
#endif

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_HOST_DEVICE_H_
