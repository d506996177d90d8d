# The same redistributions by hand, as scripts/measure/compare.py builds them: here only what needs
# nothing more than this MPI, so that it keeps working.
add_library(peer_parts OBJECT peers/redistribution.cc peers/rounds.cc)
target_include_directories(peer_parts PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
sluice_flags(peer_parts program)
sluice_unity(peer_parts)
foreach(peer mpi_peer memcpy_peer)
  add_executable(${peer} peers/${peer}.cc)
  target_link_libraries(${peer} PRIVATE peer_parts)
  target_include_directories(${peer} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  sluice_flags(${peer} program)
endforeach()
target_link_libraries(mpi_peer PRIVATE MPI::MPI_CXX)
target_link_libraries(memcpy_peer PRIVATE Threads::Threads)
