# gpu_bench: rates of the CUDA device against plain copies, and against the vendor's batched ones.
add_executable(gpu_bench
  ${CMAKE_CURRENT_LIST_DIR}/cuda_gpu_bench.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu/cuda_cases.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu/cuda_cub_batch.cu
  ${CMAKE_CURRENT_LIST_DIR}/gpu/cuda_memcpy_batch.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu/cuda_timing.cc)
target_include_directories(gpu_bench PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(gpu_bench PRIVATE sluice_device_cuda CLI11::CLI11
                                        nlohmann_json::nlohmann_json)
sluice_flags(gpu_bench program)
