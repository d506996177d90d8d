# Random jobs: one rank of them. scripts/chaos.py makes the jobs, runs and judges them.
add_executable(chaos_rank
  chaos/chaos_rank.cc
  chaos/checkpoints.cc
  chaos/memory_watch.cc
  chaos/plain_layout.cc
  chaos/streams.cc
  chaos/transfers.cc)
target_include_directories(chaos_rank PRIVATE ${PROJECT_SOURCE_DIR}/mpi_tests)
target_link_libraries(chaos_rank PRIVATE sluice_session sluice_transport_mpi MPI::MPI_CXX
                                         nlohmann_json::nlohmann_json)
sluice_flags(chaos_rank program)
