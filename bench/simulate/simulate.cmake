# sluice-sim: the simulator's commands. No MPI.
set_property(GLOBAL APPEND PROPERTY SLUICE_BENCH_SOURCES ${CMAKE_CURRENT_LIST_DIR}/sluice_sim.cc)
bench_library(sluice_sim_parts simulate/*.cc)
target_compile_definitions(sluice_sim_parts PUBLIC SLUICE_VERSION="${PROJECT_VERSION}")
target_include_directories(sluice_sim_parts PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(sluice_sim_parts PUBLIC sluice_sim sluice_deadlock
                                              sluice_workload_flags CLI11::CLI11
                                       PRIVATE nlohmann_json::nlohmann_json absl::str_format
                                               absl::time)

add_executable(sluice-sim ${CMAKE_CURRENT_LIST_DIR}/sluice_sim.cc)
target_link_libraries(sluice-sim PRIVATE sluice_sim_parts)
sluice_flags(sluice-sim tool)
