# The same redistributions by hand, as scripts/compare_peers.sh builds them: here only what needs
# nothing more than this MPI, so that it keeps working.
foreach(peer mpi_peer memcpy_peer)
  add_executable(${peer} peers/${peer}.cc peers/redistribution.cc peers/rounds.cc)
  target_include_directories(${peer} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  sluice_flags(${peer} program)
endforeach()
target_link_libraries(mpi_peer PRIVATE MPI::MPI_CXX)
target_link_libraries(memcpy_peer PRIVATE Threads::Threads)
