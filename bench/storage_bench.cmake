# What reading a file through a source costs.
add_executable(storage_bench storage_bench.cc)
target_include_directories(storage_bench PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(storage_bench PRIVATE sluice_storage CLI11::CLI11)
sluice_flags(storage_bench program)
