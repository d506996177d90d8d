# gpu_bench: rates of the CUDA device against plain copies, and against the vendor's batched ones.
add_executable(gpu_bench EXCLUDE_FROM_ALL
  micro/cuda_gpu_bench.cc
  micro/cuda_cases.cc
  micro/cuda_cub_batch.cu
  micro/cuda_memcpy_batch.cc
  micro/cuda_timing.cc)
target_include_directories(gpu_bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(gpu_bench PRIVATE sluice_device_cuda CLI11::CLI11
                                        nlohmann_json::nlohmann_json)
sluice_flags(gpu_bench program)
add_dependencies(micro_benches gpu_bench)
