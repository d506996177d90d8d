# copy_bench: rates of strided copies, casts, reductions and normalizations
# against memcpy.
find_package(benchmark REQUIRED)
add_executable(copy_bench ${CMAKE_CURRENT_LIST_DIR}/copy_bench.cc
                          ${CMAKE_CURRENT_LIST_DIR}/copy_ratio_bench.cc
                          ${CMAKE_CURRENT_LIST_DIR}/cast_bench.cc
                          ${CMAKE_CURRENT_LIST_DIR}/normalize_bench.cc)
target_include_directories(copy_bench PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(copy_bench PRIVATE sluice_device benchmark::benchmark)
sluice_flags(copy_bench program)
