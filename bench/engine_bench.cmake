# What the gate costs per bucket.
find_package(benchmark REQUIRED)
add_executable(engine_bench ${CMAKE_CURRENT_LIST_DIR}/engine_bench.cc)
target_include_directories(engine_bench PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../src)
target_link_libraries(engine_bench PRIVATE sluice_engine benchmark::benchmark)
sluice_flags(engine_bench program)
