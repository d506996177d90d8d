# http_bench: ranges over HTTP through a source, against curl.
add_executable(http_bench ${CMAKE_CURRENT_LIST_DIR}/http_bench.cc)
target_include_directories(http_bench PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(http_bench PRIVATE sluice_storage)
sluice_flags(http_bench program)
