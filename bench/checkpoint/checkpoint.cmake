# sluice_bench_parts checkpoint
target_sources(sluice_bench_parts PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/checkpoint.cc ${CMAKE_CURRENT_LIST_DIR}/options.cc
  ${CMAKE_CURRENT_LIST_DIR}/rank_tensors.cc ${CMAKE_CURRENT_LIST_DIR}/report.cc
  ${CMAKE_CURRENT_LIST_DIR}/tensors.cc)
target_include_directories(sluice_bench_parts PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(sluice_bench_parts PRIVATE sluice_storage)
