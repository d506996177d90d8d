# sluice-sim: the engine in a simulated world. No MPI.
add_library(sluice_sim_parts STATIC
  sim/deadlock.cc
  sim/interrupt.cc)
target_include_directories(sluice_sim_parts PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}
                                            PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(sluice_sim_parts PUBLIC sluice_sim_deadlock sluice_workload
                                       PRIVATE CLI11::CLI11 nlohmann_json::nlohmann_json
                                               absl::str_format absl::time)
sluice_flags(sluice_sim_parts program)

add_executable(sluice-sim sim/sluice_sim.cc)
target_compile_definitions(sluice-sim PRIVATE SLUICE_VERSION="${PROJECT_VERSION}")
target_link_libraries(sluice-sim PRIVATE sluice_sim_parts CLI11::CLI11)
sluice_flags(sluice-sim program)
