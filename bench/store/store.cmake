# sluice-store: where the members of a world meet. No MPI.
set_property(GLOBAL APPEND PROPERTY SLUICE_BENCH_SOURCES ${CMAKE_CURRENT_LIST_DIR}/sluice_store.cc)
add_executable(sluice-store ${CMAKE_CURRENT_LIST_DIR}/sluice_store.cc)
target_link_libraries(sluice-store PRIVATE sluice_workload_flags sluice_world_store CLI11::CLI11)
sluice_flags(sluice-store tool)
